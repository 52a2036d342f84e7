from sklearn import linear_model

from cuml._alike import alike

Ridge = alike(linear_model.Ridge)
LogisticRegression = alike(linear_model.LogisticRegression)

from sklearn import preprocessing

from cuml._alike import alike

StandardScaler = alike(preprocessing.StandardScaler)

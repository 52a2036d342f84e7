from sklearn import ensemble

from cuml._alike import alike

RandomForestClassifier = alike(ensemble.RandomForestClassifier)

from sklearn import neighbors

from cuml._alike import alike

KNeighborsClassifier = alike(neighbors.KNeighborsClassifier)

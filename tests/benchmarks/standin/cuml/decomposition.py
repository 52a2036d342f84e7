from sklearn import decomposition

from cuml._alike import alike

PCA = alike(decomposition.PCA)

"""Classifiers that model the rows of each class: naive Bayes, discriminant analysis, nearest centroids."""

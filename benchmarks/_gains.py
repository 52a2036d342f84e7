"""Everyday searches by what is searched, for the page on gains."""

# What people search, by the names of everyday searches.
GAINS = {
    "a linear model with a penalty, on numbers": "ridge ridge-classifier lasso elastic-net polynomial-ridge",
    "a frame of numbers, gaps and categories, before a linear model": (
        "frame-ridge frame-imputed-ridge frame-logistic"
    ),
    "naive Bayes and discriminant analysis": "gaussian-nb bernoulli-nb lda qda",
    "texts, by counts or tf-idf": (
        "text-count-bayes text-tfidf-bayes text-tfidf-logistic text-tfidf-svc text-sgd"
    ),
    "`n_neighbors` and `weights` of neighbours": "neighbours neighbours-digits",
    "`ccp_alpha` of a tree": "tree-pruned",
    "the number of trees or boosting iterations": (
        "forest-sizes gradient-boosting hist-boosting ada-boost bagging"
    ),
    "voting, stacking, calibration": "voting stacking calibrated",
    "`SVC`, `SVR` and `KernelRidge`": "svc svr random-svc-settings kernel-ridge",
    "the last step of a pipeline": "scaled-logistic selected-logistic components-svc frame-hist-boosting",
    "what shares nothing: depths of trees, networks, solvers on small data": (
        "tree forest-features extra-trees random-forest-settings network huber poisson linear-svc "
        "logistic-digits"
    ),
}

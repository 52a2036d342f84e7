"""Steps that encode columns: what each learns from the training rows is a linear map of the encoding."""

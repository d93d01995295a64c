"""The types of hypershift.openshift.io/v1beta1, once: fields, defaults, rules. Imports nothing of ours."""

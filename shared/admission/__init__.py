"""The rules of admission: pure functions of one operation and of the known reference objects.

`admission` answers a request by the rules of its kind. Each kind has a module that defines its
`rules.KindRules`; `kinds` lists them all. The webhook answers the API server's reviews with them;
`judgement` judges manifests that no client has sent to an API server yet, for every interface that
is asked whether they would be admitted or fit.
"""

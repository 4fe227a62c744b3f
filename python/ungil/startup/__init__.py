"""What runs while an interpreter starts, before the program: for variables instead of code.

`policy` obeys UNGIL_POLICY in a Python that has ungil installed, on behalf of `ungil_policy.pth`.
`sitecustomize` obeys UNGIL_PRIORITY in any Python that `ungil run` preloads the hook into; both
leave the names of threads to `ungil_thread_levels`.
"""

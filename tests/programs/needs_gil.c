/* An extension module that does not say that it can do without a GIL. */
#include <Python.h>

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "needs_gil", NULL, -1, NULL};

PyMODINIT_FUNC PyInit_needs_gil(void) { return PyModule_Create(&definition); }

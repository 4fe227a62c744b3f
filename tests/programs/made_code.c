/* An extension module that runs machine code which it makes while the program runs, as compilers of
   Python code do. No table says how that code is left. */
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef void made(uint64_t times);

/* Counts down to 0. */
#if defined(__x86_64__)
static const uint8_t code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
#elif defined(__aarch64__)
static const uint32_t code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif

static made *count_down;

/* Nothing of it stays on the stack: it looks, and then jumps. */
__attribute__((noinline)) static void go_on(uint64_t times) {
    if (times > 0) count_down(times);
}

static PyObject *run(PyObject *module, PyObject *times) {
    go_on(PyLong_AsUnsignedLongLong(times));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"run", run, METH_O, NULL}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "made_code", NULL, -1, methods};

PyMODINIT_FUNC PyInit_made_code(void) {
    void *place = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return PyErr_SetFromErrno(PyExc_OSError);
    memcpy(place, code, sizeof code);
    if (mprotect(place, sizeof code, PROT_READ | PROT_EXEC) != 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    __builtin___clear_cache(place, (char *)place + sizeof code);
    count_down = (made *)place;
    return PyModule_Create(&definition);
}

/* An extension module that runs machine code which it makes while the program runs, as compilers of
   Python code do. No table says how that code is left. */
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

typedef void made(uint64_t times);

/* Each counts down to 0. The deep one keeps 32 KiB on the stack, and the way back in a register, as
   the matrix products of OpenBLAS do. */
#if defined(__x86_64__)
static const uint8_t flat[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};
static const uint8_t deep[] = {0x53, 0x48, 0x89, 0xe3, 0x48, 0x81, 0xec, 0x00, 0x80, 0x00, 0x00, 0x48,
                               0xff, 0xcf, 0x75, 0xfb, 0x48, 0x89, 0xdc, 0x5b, 0xc3};
#elif defined(__aarch64__)
static const uint32_t flat[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
static const uint32_t deep[] = {0xa9bf7bf3, 0x910003f3, 0xd14023ff, 0xf1000400, 0x54ffffe1,
                                0x9100027f, 0xa8c17bf3, 0xd65f03c0};
#endif

static made *count_down_flat, *count_down_deep;

/* Nothing of these two stays on the stack: each looks, and then jumps. */
__attribute__((noinline)) static void go_on_flat(uint64_t times) {
    if (times > 0) count_down_flat(times);
}

__attribute__((noinline)) static void go_on_deep(uint64_t times) {
    if (times > 0) count_down_deep(times);
}

static PyObject *run(PyObject *module, PyObject *times) {
    go_on_flat(PyLong_AsUnsignedLongLong(times));
    Py_RETURN_NONE;
}

static PyObject *run_deep(PyObject *module, PyObject *times) {
    go_on_deep(PyLong_AsUnsignedLongLong(times));
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"run", run, METH_O, NULL}, {"run_deep", run_deep, METH_O, NULL}, {NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "made_code", NULL, -1, methods};

static made *make(const void *code, size_t length) {
    void *place = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return NULL;
    memcpy(place, code, length);
    if (mprotect(place, length, PROT_READ | PROT_EXEC) != 0) return NULL;
    __builtin___clear_cache(place, (char *)place + length);
    return (made *)place;
}

PyMODINIT_FUNC PyInit_made_code(void) {
    count_down_flat = make(flat, sizeof flat);
    count_down_deep = make(deep, sizeof deep);
    if (!count_down_flat || !count_down_deep) return PyErr_SetFromErrno(PyExc_OSError);
    return PyModule_Create(&definition);
}

/* An extension module for free-threaded interpreters: it holds the lock of an object, or stops the
 * world, for a known time, and says how long whoever wants that lock was kept from it. */
#include <Python.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int held;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Sleeps without letting go of anything. */
static void keep(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

/* hold(object, ms): has the object's lock for so long. */
static PyObject *hold(PyObject *module, PyObject *args) {
    PyObject *object;
    long ms;
    if (!PyArg_ParseTuple(args, "Ol", &object, &ms)) return NULL;
    Py_BEGIN_CRITICAL_SECTION(object);
    atomic_store(&held, 1);
    keep(ms);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* take(object): awaits that it is held, takes its lock, and returns how many ns that took. */
static PyObject *take(PyObject *module, PyObject *object) {
    while (!atomic_exchange(&held, 0)) {
        Py_BEGIN_ALLOW_THREADS;
        Py_END_ALLOW_THREADS;
    }
    long long since_ns = now_ns(), taken_ns;
    Py_BEGIN_CRITICAL_SECTION(object);
    taken_ns = now_ns();
    Py_END_CRITICAL_SECTION();
    return PyLong_FromLongLong(taken_ns - since_ns);
}

struct stopping {
    long ms;
    long long stopped_ns;
};

/* Called while the world stands still. */
static int keep_stopped(PyObject *object, void *argument) {
    struct stopping *stopping = argument;
    long long since_ns = now_ns();
    keep(stopping->ms);
    stopping->stopped_ns = now_ns() - since_ns;
    return 0;
}

/* stop(ms): the world stands still for so long; returns for how many ns it surely did. */
static PyObject *stop(PyObject *module, PyObject *ms) {
    struct stopping stopping = {PyLong_AsLong(ms), 0};
    PyUnstable_GC_VisitObjects(keep_stopped, &stopping);
    return PyLong_FromLongLong(stopping.stopped_ns);
}

static PyMethodDef methods[] = {
    {"hold", hold, METH_VARARGS, NULL},
    {"take", take, METH_O, NULL},
    {"stop", stop, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "parking", NULL, -1, methods};

PyMODINIT_FUNC PyInit_parking(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
    return module;
}

/* The only crossing from Python into libprovegym.so: opens the library when asked, turns a status into an exception, and
 * moves batches between Python objects and the buffers of include/provegym.h. One abi3 build serves CPython 3.11 and newer.
 *
 * The interpreter lock is held through a step as long as the last one was short, because letting it go costs more than
 * such a step; it is let go for everything else. A flag in each Vector, set and cleared under the lock, refuses a second
 * thread before it could touch the buffers of a step under way. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "provegym.h"

#ifndef PGYM_HEADER_SHA256
#error "build by setup.py, which says which provegym.h this is built from"
#endif
#define QUOTE(x) #x
#define TEXT(x) QUOTE(x)

/* A step that took longer than this lets other Python threads run during the next one. */
#define SHORT_STEP_NS 5000
/* A blocking wait looks at Python's signals this often. */
#define SLICE_MS 50

#define FUNCTIONS(X)                                                                                                        \
  X(abi_version) X(build_info) X(free) X(vec_make) X(vec_bind) X(vec_reset) X(vec_queue) X(vec_send) X(vec_recv)            \
  X(vec_step) X(vec_snapshot) X(vec_restore) X(vec_fork) X(vec_close) X(request)

static struct {
#define MEMBER(name) __typeof__(&pgym_##name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} lib;
static int loaded;
static PyObject *by_status; /* dict: status -> exception class */

/* fail raises the exception of a status and returns NULL. */
static PyObject *fail(int32_t code, const char *text) {
  PyObject *key = PyLong_FromLong(code);
  if (!key) return NULL;
  PyObject *cls = by_status ? PyDict_GetItemWithError(by_status, key) : NULL;
  Py_DECREF(key);
  if (!PyErr_Occurred()) {
    if (cls)
      PyErr_SetString(cls, text);
    else
      PyErr_Format(PyExc_RuntimeError, "status %d: %s", code, text);
  }
  return NULL;
}

static PyObject *refuse(const char *format, ...) {
  va_list args;
  va_start(args, format);
  PyObject *text = PyUnicode_FromFormatV(format, args);
  va_end(args);
  const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (utf8) fail(PGYM_E_INPUT, utf8);
  Py_XDECREF(text);
  return NULL;
}

static int need_library(void) {
  if (!loaded) PyErr_SetString(PyExc_RuntimeError, "the library is not loaded: call load first");
  return loaded;
}

/* CALL runs one function of the library without the interpreter lock. */
#define CALL(status, expression)   \
  do {                             \
    Py_BEGIN_ALLOW_THREADS         \
    status = (expression);         \
    Py_END_ALLOW_THREADS           \
  } while (0)

static PyObject *take_bytes(pgym_bytes *b) {
  PyObject *out = PyBytes_FromStringAndSize(b->data, (Py_ssize_t)b->len);
  lib.free(b);
  return out;
}

static PyObject *native_load(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  (void)self;
  if (n != 2 || !PyDict_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "load(path, exceptions by status)");
    return NULL;
  }
  if (loaded) Py_RETURN_NONE;
  const char *path = PyUnicode_AsUTF8AndSize(args[0], NULL);
  if (!path) return NULL;
  void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!so) {
    PyErr_SetString(PyExc_OSError, dlerror());
    return NULL;
  }
#define RESOLVE(name)                                                                   \
  if (!(lib.name = (__typeof__(lib.name))dlsym(so, "pgym_" #name))) {                   \
    PyErr_Format(PyExc_OSError, "%s has no function pgym_" #name, path);                \
    return NULL;                                                                        \
  }
  FUNCTIONS(RESOLVE)
#undef RESOLVE
  int32_t abi = lib.abi_version();
  if (abi != PGYM_ABI_VERSION) {
    PyErr_Format(PyExc_OSError, "%s has ABI version %d; this package needs %d", path, abi, PGYM_ABI_VERSION);
    return NULL;
  }
  by_status = Py_NewRef(args[1]);
  loaded = 1;
  Py_RETURN_NONE;
}

static PyObject *native_build_info(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  if (!need_library()) return NULL;
  pgym_bytes out = {0};
  pgym_error err = {.size = sizeof err};
  int32_t st = lib.build_info(&out, &err);
  return st ? fail(st, err.text) : take_bytes(&out);
}

static PyObject *native_request(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  (void)self;
  if (!need_library()) return NULL;
  if (n != 3) {
    PyErr_SetString(PyExc_TypeError, "request(handle, method, json)");
    return NULL;
  }
  unsigned long long handle = PyLong_AsUnsignedLongLong(args[0]);
  if (PyErr_Occurred()) return NULL;
  Py_ssize_t len;
  const char *method = PyUnicode_AsUTF8AndSize(args[1], NULL);
  const char *json = method ? PyUnicode_AsUTF8AndSize(args[2], &len) : NULL;
  if (!json) return NULL;
  pgym_bytes out = {0};
  pgym_error err = {.size = sizeof err};
  int32_t st;
  CALL(st, lib.request(handle, method, json, (uint64_t)len, &out, &err));
  return st ? fail(st, err.text) : take_bytes(&out);
}

/* ---- Vector ---- */

/* The buffers that Python binds. Each is C-contiguous, writable and (num_envs,) + tail. */
struct column {
  const char *name;
  size_t at; /* of the pointer in pgym_io */
  const char *formats;
  const char *dtype;
  Py_ssize_t size, tail[2];
};
#define OBS(name, formats, dtype, size, ...)                             \
  {#name, offsetof(pgym_io, obs.name), formats, dtype, size, __VA_ARGS__}, \
      {"final_" #name, offsetof(pgym_io, final_obs.name), formats, dtype, size, __VA_ARGS__}
#define COLUMN(name, formats, dtype, size) {#name, offsetof(pgym_io, name), formats, dtype, size, {0, 0}}
static const struct column columns[] = {
    OBS(slots, "f", "float32", 4, {PGYM_SLOTS, PGYM_SLOT_LEN}),
    OBS(goal, "f", "float32", 4, {PGYM_GOAL_LEN, 0}),
    OBS(last, "f", "float32", 4, {PGYM_LAST_LEN, 0}),
    OBS(budget, "f", "float32", 4, {PGYM_BUDGET_LEN, 0}),
    OBS(tools, "f", "float32", 4, {PGYM_TOOLS, PGYM_TOOL_LEN}),
    OBS(phase, "il", "int32", 4, {PGYM_PHASE_LEN, 0}),
    OBS(mask, "B?", "uint8 or bool", 1, {PGYM_ACTIONS, 0}),
    COLUMN(action, "il", "int32", 4),
    COLUMN(reward, "d", "float64", 8),
    COLUMN(terminated, "B?", "uint8 or bool", 1),
    COLUMN(truncated, "B?", "uint8 or bool", 1),
    COLUMN(outcome, "B?", "uint8 or bool", 1),
    COLUMN(limit, "B?", "uint8 or bool", 1),
    COLUMN(components, "B?", "uint8 or bool", 1),
    COLUMN(calls, "il", "int32", 4),
    COLUMN(began, "B?", "uint8 or bool", 1),
};
#define NUM_COLUMNS (sizeof columns / sizeof *columns)

typedef struct {
  PyObject_HEAD
  uint64_t handle; /* 0 once closed */
  uint32_t n;
  int text, bound, busy;
  uint64_t step_ns; /* of the last step */
  pgym_io io;
  pgym_text obs_text, final_text, task;
  Py_buffer held[NUM_COLUMNS];
  char *block; /* text actions, as action_text and action_off describe them */
  size_t capacity;
  uint32_t *off, *ids;
  uint32_t *ready, num_ready; /* rows that a recv took and Ctrl-C kept it from returning */
  uint32_t flying;            /* rows sent and not yet taken */
} Vector;

static int enter(Vector *v) {
  if (v->busy) {
    fail(PGYM_E_BUSY, "another thread is inside this environment; use one thread an environment at a time");
    return 0;
  }
  v->busy = 1;
  return 1;
}

static PyObject *leave(Vector *v, int32_t status, const pgym_error *err) {
  v->busy = 0;
  if (status) return fail(status, err->text);
  Py_RETURN_NONE;
}

static int bind(Vector *v, pgym_error *err) {
  v->io.action_text = v->block;
  int32_t st = lib.vec_bind(v->handle, &v->io, err);
  v->bound = st == PGYM_OK;
  return st;
}

static void release_columns(Vector *v) {
  for (size_t i = 0; i < NUM_COLUMNS; i++) PyBuffer_Release(&v->held[i]);
}

static int vector_init(PyObject *self, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"config", "num_envs", "text", "final", NULL};
  Vector *v = (Vector *)self;
  const char *json;
  Py_ssize_t len;
  unsigned int n;
  int final;
  if (!need_library()) return -1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s#Ipp", names, &json, &len, &n, &v->text, &final)) return -1;
  if (v->handle) {
    PyErr_SetString(PyExc_RuntimeError, "a Vector is made once");
    return -1;
  }
  pgym_error err = {.size = sizeof err};
  int32_t st;
  uint64_t handle = 0;
  CALL(st, lib.vec_make(json, (uint64_t)len, &handle, &err));
  if (st) {
    fail(st, err.text);
    return -1;
  }
  v->handle = handle;
  v->n = n;
  v->capacity = 256;
  v->block = malloc(v->capacity);
  v->off = calloc((size_t)n + 1, sizeof *v->off);
  v->ids = calloc((size_t)n + 1, sizeof *v->ids);
  v->ready = calloc(2 * (size_t)n + 1, sizeof *v->ready);
  if (!v->block || !v->off || !v->ids || !v->ready) {
    PyErr_NoMemory();
    return -1;
  }
  v->io.size = sizeof v->io;
  v->io.num_envs = n;
  v->io.task = &v->task;
  if (v->text) {
    v->io.action_off = v->off;
    v->io.obs.text = &v->obs_text;
    if (final) v->io.final_obs.text = &v->final_text;
  }
  return 0;
}

static void vector_dealloc(PyObject *self) {
  Vector *v = (Vector *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (v->handle) {
    pgym_error err = {.size = sizeof err};
    int32_t st; /* nobody is left to tell; in a forked child the library refuses, which is right */
    CALL(st, lib.vec_close(v->handle, &err));
    (void)st;
  }
  release_columns(v);
  free(v->block);
  free(v->off);
  free(v->ids);
  free(v->ready);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyObject *shape_text(const Py_ssize_t *dim, int n) {
  PyObject *out = PyUnicode_FromString("(");
  for (int i = 0; out && i < n; i++) {
    PyObject *more = PyUnicode_FromFormat(i ? "%U, %zd" : "%U%zd", out, dim[i]);
    Py_DECREF(out);
    out = more;
  }
  if (!out) return NULL;
  PyObject *end = PyUnicode_FromFormat("%U)", out);
  Py_DECREF(out);
  return end;
}

/* hold takes the buffer of one column, or says what was expected and what came. */
static int hold(Vector *v, const struct column *c, PyObject *array) {
  Py_buffer *b = &v->held[c - columns];
  Py_ssize_t want[3] = {v->n, c->tail[0], c->tail[1]};
  int ndim = c->tail[1] ? 3 : c->tail[0] ? 2 : 1;
  if (PyObject_GetBuffer(array, b, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) {
    PyErr_Clear();
    refuse("buffer %s: expected a writable C-contiguous array of %s, got one that is not", c->name, c->dtype);
    return 0;
  }
  int fits = b->itemsize == c->size && b->format && strlen(b->format) == 1 && strchr(c->formats, *b->format) && b->ndim == ndim;
  for (int i = 0; fits && i < ndim; i++) fits = b->shape[i] == want[i];
  if (!fits) {
    PyObject *wanted = shape_text(want, ndim), *got = shape_text(b->shape, b->ndim);
    if (wanted && got)
      refuse("buffer %s: expected %s of shape %U, got format %s of shape %U", c->name, c->dtype, wanted,
             b->format ? b->format : "B", got);
    Py_XDECREF(wanted);
    Py_XDECREF(got);
    PyBuffer_Release(b);
    return 0;
  }
  *(void **)((char *)&v->io + c->at) = b->buf;
  return 1;
}

static PyObject *vector_bind(PyObject *self, PyObject *arrays) {
  Vector *v = (Vector *)self;
  if (!PyDict_Check(arrays)) {
    PyErr_SetString(PyExc_TypeError, "bind(dict of name to array)");
    return NULL;
  }
  if (v->bound) return refuse("the buffers of a vector are bound once");
  PyObject *name, *array;
  Py_ssize_t pos = 0;
  while (PyDict_Next(arrays, &pos, &name, &array)) {
    const char *s = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!s) return NULL;
    size_t i = 0;
    while (i < NUM_COLUMNS && strcmp(columns[i].name, s)) i++;
    if (i == NUM_COLUMNS) return refuse("there is no buffer %s", s);
    if (!hold(v, &columns[i], array)) return NULL;
  }
  if (!enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  int32_t st = bind(v, &err);
  return leave(v, st, &err);
}

/* pack_one appends the UTF-8 of one action to the block and returns its end there, or -1. */
static Py_ssize_t pack_one(Vector *v, PyObject *action, size_t at, int *moved) {
  PyObject *encoded = NULL;
  char *data;
  Py_ssize_t len;
  if (PyUnicode_Check(action)) {
    data = (char *)PyUnicode_AsUTF8AndSize(action, &len);
    if (!data) { /* a lone surrogate: the agent's malformed text, not the caller's mistake */
      PyErr_Clear();
      encoded = PyUnicode_AsEncodedString(action, "utf-8", "surrogatepass");
      if (!encoded || PyBytes_AsStringAndSize(encoded, &data, &len)) return -1;
    }
  } else if (!PyBytes_Check(action)) {
    PyObject *type = PyType_GetName(Py_TYPE(action));
    if (type) refuse("a text action is str or bytes, not %U", type);
    Py_XDECREF(type);
    return -1;
  } else if (PyBytes_AsStringAndSize(action, &data, &len)) {
    return -1;
  }
  size_t end = at + (size_t)len;
  if (end > UINT32_MAX) {
    Py_XDECREF(encoded);
    refuse("the actions of one step have more than 4 GiB");
    return -1;
  }
  if (end > v->capacity) {
    size_t capacity = end + end / 2;
    char *block = realloc(v->block, capacity);
    if (!block) {
      Py_XDECREF(encoded);
      PyErr_NoMemory();
      return -1;
    }
    v->block = block;
    v->capacity = capacity;
    *moved = 1;
  }
  memcpy(v->block + at, data, (size_t)len);
  Py_XDECREF(encoded);
  return (Py_ssize_t)end;
}

/* saturate keeps an action that no mask can allow illegal in 32 bits. */
static int32_t saturate(long long a) { return a < 0 || a >= PGYM_ACTIONS ? -1 : (int32_t)a; }

static int put_numbers(Vector *v, PyObject *actions) {
  Py_buffer b;
  if (PyObject_GetBuffer(actions, &b, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
    PyErr_Clear();
    refuse("structured actions are a C-contiguous array of int32 or int64 of shape (%u,)", v->n);
    return 0;
  }
  char f = b.format && strlen(b.format) == 1 ? *b.format : 0;
  int ok = f && strchr("ilq", f) && (b.itemsize == 4 || b.itemsize == 8) && b.ndim == 1 && b.shape[0] == v->n;
  if (!ok) {
    refuse("structured actions are an array of int32 or int64 of shape (%u,), not of format %s with %d dimensions", v->n,
           b.format ? b.format : "B", b.ndim);
  } else {
    int32_t *to = (int32_t *)v->io.action;
    for (uint32_t i = 0; i < v->n; i++)
      to[i] = saturate(b.itemsize == 4 ? ((const int32_t *)b.buf)[i] : ((const int64_t *)b.buf)[i]);
  }
  PyBuffer_Release(&b);
  return ok;
}

static PyObject *item(PyObject *seq, Py_ssize_t i) { return PyList_Check(seq) ? PyList_GetItem(seq, i) : PyTuple_GetItem(seq, i); }

static int put_texts(Vector *v, PyObject *actions) {
  if (!PyList_Check(actions) && !PyTuple_Check(actions)) {
    refuse("text actions are a list or tuple of %u strings", v->n);
    return 0;
  }
  Py_ssize_t n = PyObject_Size(actions);
  if (n != v->n) {
    refuse("there are %u environments and %zd actions", v->n, n);
    return 0;
  }
  Py_ssize_t at = 0;
  int moved = 0;
  for (uint32_t i = 0; i < v->n; i++) {
    if ((at = pack_one(v, item(actions, i), (size_t)at, &moved)) < 0) return 0;
    v->off[i + 1] = (uint32_t)at;
  }
  if (moved) {
    pgym_error err = {.size = sizeof err};
    int32_t st = bind(v, &err);
    if (st) {
      fail(st, err.text);
      return 0;
    }
  }
  return 1;
}

static int ready(Vector *v) {
  if (!v->handle)
    fail(PGYM_E_HANDLE, "the environment is closed");
  else if (!v->bound)
    fail(PGYM_E_STATE, "the buffers are not bound");
  return v->bound;
}

static int put(Vector *v, PyObject *actions) {
  return ready(v) && (v->text ? put_texts(v, actions) : put_numbers(v, actions));
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int32_t step(Vector *v, pgym_error *err) {
  int32_t st;
  uint64_t began = now_ns();
  if (v->step_ns < SHORT_STEP_NS)
    st = lib.vec_step(v->handle, err);
  else
    CALL(st, lib.vec_step(v->handle, err));
  v->step_ns = now_ns() - began;
  return st;
}

static PyObject *vector_step(PyObject *self, PyObject *actions) {
  Vector *v = (Vector *)self;
  if (!enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  if (!put(v, actions)) {
    v->busy = 0;
    return NULL;
  }
  int32_t st = step(v, &err);
  v->busy = 0;
  if (st) return fail(st, err.text);
  const pgym_io *io = &v->io;
  return PyBool_FromLong(memchr(io->terminated, 1, v->n) || memchr(io->truncated, 1, v->n) ||
                         (io->began && memchr(io->began, 1, v->n)));
}

static PyObject *vector_step_one(PyObject *self, PyObject *action) {
  Vector *v = (Vector *)self;
  if (!enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  PyObject *one = NULL, *out = NULL;
  if (v->text) {
    one = PyTuple_New(1);
    if (!one || PyTuple_SetItem(one, 0, Py_NewRef(action)) || !put(v, one)) goto done;
  } else {
    int overflow;
    if (!ready(v)) goto done;
    PyObject *index = PyBool_Check(action) ? NULL : PyNumber_Index(action);
    if (!index) {
      PyErr_Clear();
      PyObject *type = PyType_GetName(Py_TYPE(action));
      if (type) refuse("a structured action is a whole number, not %U", type);
      Py_XDECREF(type);
      goto done;
    }
    long long a = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    *(int32_t *)v->io.action = overflow ? -1 : saturate(a);
  }
  int32_t st = step(v, &err);
  if (st) {
    fail(st, err.text);
    goto done;
  }
  const pgym_io *io = &v->io;
  out = Py_BuildValue("dOOiiii", *io->reward, *io->terminated ? Py_True : Py_False, *io->truncated ? Py_True : Py_False,
                      (int)*io->outcome, (int)*io->limit, (int)*io->components, (int)*io->calls);
done:
  Py_XDECREF(one);
  v->busy = 0;
  return out;
}

/* take_ids reads a sequence of row numbers into v->ids and returns how many, or -1. */
static Py_ssize_t take_ids(Vector *v, PyObject *seq) {
  if (!PyList_Check(seq) && !PyTuple_Check(seq)) {
    refuse("rows are a list or tuple of whole numbers");
    return -1;
  }
  Py_ssize_t n = PyObject_Size(seq);
  if (n > v->n) {
    refuse("there are %u environments and %zd rows", v->n, n);
    return -1;
  }
  for (Py_ssize_t k = 0; k < n; k++) {
    size_t i = PyLong_AsSize_t(item(seq, k));
    if (PyErr_Occurred() || i >= v->n) {
      PyErr_Clear();
      refuse("rows are whole numbers from 0 to %u", v->n - 1);
      return -1;
    }
    v->ids[k] = (uint32_t)i;
  }
  return n;
}

static PyObject *vector_send(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "send(actions of all rows, rows)");
    return NULL;
  }
  if (!enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  Py_ssize_t n = take_ids(v, args[1]);
  if (n < 0 || !put(v, args[0])) {
    v->busy = 0;
    return NULL;
  }
  if (v->num_ready + v->flying + (size_t)n > v->n) { /* ready has room for no row twice */
    v->busy = 0;
    return fail(PGYM_E_STATE, "rows that were sent have not been received yet: receive them first");
  }
  int32_t st;
  CALL(st, lib.vec_send(v->handle, v->ids, (uint32_t)n, &err));
  if (!st) v->flying += (uint32_t)n;
  return leave(v, st, &err);
}

static int by_row(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static PyObject *vector_recv(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "recv(min_ready, timeout_ms)");
    return NULL;
  }
  unsigned long need = PyLong_AsUnsignedLong(args[0]);
  unsigned long left = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLong(args[1]);
  if (PyErr_Occurred()) return NULL;
  if (!ready(v) || !enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  if (need > v->num_ready + v->flying) need = v->num_ready + v->flying;
  for (;;) {
    uint32_t n = 0, slice = left < SLICE_MS ? (uint32_t)left : SLICE_MS;
    uint32_t want = need > v->num_ready ? (uint32_t)need - v->num_ready : 0;
    int32_t st;
    if (v->flying || !v->num_ready) {
      CALL(st, lib.vec_recv(v->handle, v->ready + v->num_ready, &n, want, slice, &err));
      if (st) return leave(v, st, &err);
    }
    v->num_ready += n;
    v->flying -= n;
    left -= slice;
    if (v->num_ready >= need || !left) break;
    if (PyErr_CheckSignals()) {
      v->busy = 0;
      return NULL;
    }
  }
  v->busy = 0;
  qsort(v->ready, v->num_ready, sizeof *v->ready, by_row); /* several slices may have brought them */
  PyObject *out = PyBytes_FromStringAndSize((const char *)v->ready, (Py_ssize_t)(v->num_ready * sizeof *v->ready));
  if (out) v->num_ready = 0;
  return out;
}

/* flat takes a C-contiguous buffer of n items of one size, or None as NULL. */
static int flat(PyObject *o, Py_buffer *b, const char *what, Py_ssize_t size, Py_ssize_t n) {
  memset(b, 0, sizeof *b);
  if (o == Py_None) return 1;
  if (PyObject_GetBuffer(o, b, PyBUF_C_CONTIGUOUS)) return 0;
  if (b->itemsize == size && b->len == size * n) return 1;
  refuse("%s: expected %zd items of %zd bytes, got %zd bytes in items of %zd", what, n, size, b->len, b->itemsize);
  PyBuffer_Release(b);
  return 0;
}

static PyObject *vector_reset(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 3) {
    PyErr_SetString(PyExc_TypeError, "reset(seeds, has_seed, mask)");
    return NULL;
  }
  Py_buffer seeds, has, mask;
  if (!flat(args[0], &seeds, "seeds", 8, v->n)) return NULL;
  if (!flat(args[1], &has, "has_seed", 1, v->n)) goto no_has;
  if (!flat(args[2], &mask, "mask", 1, v->n)) goto no_mask;
  PyObject *out = NULL;
  if (enter(v)) {
    pgym_error err = {.size = sizeof err};
    int32_t st;
    CALL(st, lib.vec_reset(v->handle, seeds.buf, has.buf, mask.buf, &err));
    out = leave(v, st, &err);
  }
  PyBuffer_Release(&mask);
  PyBuffer_Release(&has);
  PyBuffer_Release(&seeds);
  return out;
no_mask:
  PyBuffer_Release(&has);
no_has:
  PyBuffer_Release(&seeds);
  return NULL;
}

static PyObject *vector_queue(PyObject *self, PyObject *json) {
  Vector *v = (Vector *)self;
  Py_ssize_t len;
  const char *s = PyUnicode_AsUTF8AndSize(json, &len);
  if (!s || !enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  int32_t st;
  CALL(st, lib.vec_queue(v->handle, s, (uint64_t)len, &err));
  return leave(v, st, &err);
}

static PyObject *vector_snapshot(PyObject *self, PyObject *index) {
  Vector *v = (Vector *)self;
  unsigned long i = PyLong_AsUnsignedLong(index);
  if (PyErr_Occurred() || !enter(v)) return NULL;
  pgym_bytes out = {0};
  pgym_error err = {.size = sizeof err};
  int32_t st;
  CALL(st, lib.vec_snapshot(v->handle, i > UINT32_MAX ? UINT32_MAX : (uint32_t)i, &out, &err));
  v->busy = 0;
  return st ? fail(st, err.text) : take_bytes(&out);
}

static PyObject *vector_restore(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  char *data;
  Py_ssize_t len;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "restore(row, snapshot)");
    return NULL;
  }
  unsigned long i = PyLong_AsUnsignedLong(args[0]);
  if (PyErr_Occurred()) return NULL;
  if (!PyBytes_Check(args[1])) return refuse("a snapshot is bytes, as snapshot() returned them");
  if (PyBytes_AsStringAndSize(args[1], &data, &len) || !enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  int32_t st;
  CALL(st, lib.vec_restore(v->handle, i > UINT32_MAX ? UINT32_MAX : (uint32_t)i, data, (uint64_t)len, &err));
  return leave(v, st, &err);
}

static PyObject *vector_fork(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "fork(row, rows)");
    return NULL;
  }
  unsigned long src = PyLong_AsUnsignedLong(args[0]);
  if (PyErr_Occurred() || !enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  Py_ssize_t n = take_ids(v, args[1]);
  if (n < 0) {
    v->busy = 0;
    return NULL;
  }
  int32_t st;
  CALL(st, lib.vec_fork(v->handle, src > UINT32_MAX ? UINT32_MAX : (uint32_t)src, v->ids, (uint32_t)n, &err));
  return leave(v, st, &err);
}

static PyObject *vector_close(PyObject *self, PyObject *unused) {
  Vector *v = (Vector *)self;
  (void)unused;
  if (!v->handle) Py_RETURN_NONE;
  if (!enter(v)) return NULL;
  pgym_error err = {.size = sizeof err};
  int32_t st;
  CALL(st, lib.vec_close(v->handle, &err));
  v->handle = 0;
  v->bound = 0;
  release_columns(v);
  return leave(v, st, &err);
}

static const pgym_text *which_text(Vector *v, PyObject *name) {
  const char *s = PyUnicode_AsUTF8AndSize(name, NULL);
  if (!s) return NULL;
  const pgym_text *t = !strcmp(s, "text") ? &v->obs_text : !strcmp(s, "final") ? &v->final_text : &v->task;
  if (v->busy) return (const pgym_text *)fail(PGYM_E_BUSY, "another thread is inside this environment");
  if (v->bound && t->off) return t;
  refuse("there is no %s to read yet", s);
  return NULL;
}

static PyObject *text_at(const pgym_text *t, uint32_t i) {
  return PyUnicode_DecodeUTF8(t->data + t->off[i], (Py_ssize_t)(t->off[i + 1] - t->off[i]), NULL);
}

/* views returns the strings as slices of one copy of their block: the block itself moves, and goes when the vector is closed,
 * while Python may keep a view for ever. */
static PyObject *views(const pgym_text *t, uint32_t n) {
  PyObject *copy = PyBytes_FromStringAndSize(t->data, (Py_ssize_t)t->off[n]);
  PyObject *all = copy ? PyMemoryView_FromObject(copy) : NULL;
  PyObject *out = all ? PyTuple_New(n) : NULL;
  for (uint32_t i = 0; out && i < n; i++) {
    PyObject *s = PySequence_GetSlice(all, (Py_ssize_t)t->off[i], (Py_ssize_t)t->off[i + 1]);
    if (!s || PyTuple_SetItem(out, i, s)) Py_CLEAR(out);
  }
  Py_XDECREF(all);
  Py_XDECREF(copy);
  return out;
}

static PyObject *vector_text(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "text(which, row)");
    return NULL;
  }
  const pgym_text *t = which_text(v, args[0]);
  if (!t) return NULL;
  size_t i = PyLong_AsSize_t(args[1]);
  if (PyErr_Occurred()) return NULL;
  if (i >= v->n) return refuse("there is no row %zd", (Py_ssize_t)i);
  return text_at(t, (uint32_t)i);
}

static PyObject *vector_texts(PyObject *self, PyObject *const *args, Py_ssize_t nargs) {
  Vector *v = (Vector *)self;
  if (nargs != 2) {
    PyErr_SetString(PyExc_TypeError, "texts(which, view)");
    return NULL;
  }
  const pgym_text *t = which_text(v, args[0]);
  int view = t ? PyObject_IsTrue(args[1]) : -1;
  if (view > 0) return views(t, v->n);
  PyObject *out = view < 0 ? NULL : PyTuple_New(v->n);
  for (uint32_t i = 0; out && i < v->n; i++) {
    PyObject *s = text_at(t, i);
    if (!s || PyTuple_SetItem(out, i, s)) Py_CLEAR(out);
  }
  return out;
}

static PyObject *vector_get_handle(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((Vector *)self)->handle);
}

#define FAST(f) (PyCFunction)(void (*)(void))f, METH_FASTCALL
static PyMethodDef vector_methods[] = {
    {"bind", vector_bind, METH_O, "bind(arrays): binds numpy arrays by name, once."},
    {"reset", FAST(vector_reset), "reset(seeds, has_seed, mask): starts new episodes; None as in the header."},
    {"queue", vector_queue, METH_O, "queue(json): appends tasks to the queue."},
    {"step", vector_step, METH_O, "step(actions): one step of every row; whether an episode ended or began."},
    {"step_one", vector_step_one, METH_O,
     "step_one(action): one step of a vector of one: reward, terminated, truncated, outcome, limit, components, calls."},
    {"send", FAST(vector_send), "send(actions of all rows, rows): starts stepping the rows."},
    {"recv", FAST(vector_recv), "recv(min_ready, timeout_ms): waits; returns the rows that are done as uint32 bytes."},
    {"snapshot", vector_snapshot, METH_O, "snapshot(row): the episode as bytes."},
    {"restore", FAST(vector_restore), "restore(row, snapshot): continues from it."},
    {"fork", FAST(vector_fork), "fork(row, rows): copies the episode of a row into others."},
    {"close", vector_close, METH_NOARGS, "close(): frees the vector; a second call does nothing."},
    {"text", FAST(vector_text), "text(which, row): one string; which is text, final or task."},
    {"texts", FAST(vector_texts), "texts(which, view): all rows as str, or as memoryviews of one copy."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef vector_getset[] = {
    {"handle", vector_get_handle, NULL, "The library's handle, 0 once closed.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot vector_slots[] = {
    {Py_tp_doc, "Vector(config, num_envs, text, final): a vector of environments in the library."},
    {Py_tp_init, vector_init},
    {Py_tp_dealloc, vector_dealloc},
    {Py_tp_methods, vector_methods},
    {Py_tp_getset, vector_getset},
    {0, NULL},
};
static PyType_Spec vector_spec = {"provegym._native.Vector", sizeof(Vector), 0, Py_TPFLAGS_DEFAULT, vector_slots};

static PyMethodDef native_methods[] = {
    {"load", FAST(native_load), "load(path, exceptions): opens the library once."},
    {"build_info", native_build_info, METH_NOARGS, "build_info(): JSON of how the library was built."},
    {"request", FAST(native_request), "request(handle, method, json): the cold door; answers JSON."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT, "_native", "The crossing into libprovegym.so.", -1, native_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
  PyObject *m = PyModule_Create(&native_module);
  PyObject *type = m ? PyType_FromSpec(&vector_spec) : NULL;
  if (!type || PyModule_AddObjectRef(m, "Vector", type) ||
      PyModule_AddStringConstant(m, "HEADER", TEXT(PGYM_HEADER_SHA256)) || PyModule_AddIntMacro(m, PGYM_ACTIONS) ||
      PyModule_AddIntMacro(m, PGYM_SLOTS) || PyModule_AddIntMacro(m, PGYM_SLOT_LEN) || PyModule_AddIntMacro(m, PGYM_GOAL_LEN) ||
      PyModule_AddIntMacro(m, PGYM_LAST_LEN) || PyModule_AddIntMacro(m, PGYM_BUDGET_LEN) ||
      PyModule_AddIntMacro(m, PGYM_TOOLS) || PyModule_AddIntMacro(m, PGYM_TOOL_LEN) || PyModule_AddIntMacro(m, PGYM_PHASE_LEN))
    Py_CLEAR(m);
  Py_XDECREF(type);
  return m;
}

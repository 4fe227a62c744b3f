"""One thread keeps the GIL in a known native function, again and again, while another one wants it.

What the functions return is small: to free it would be a long hold of its own.

Usage: native_holds.py NAME SECONDS; NAME is one of `HOLDS`. Prints the seconds of CPU time that one
call took, as JSON. Each call is made so large that it lasts 0.1 to 0.3 s on an idle processor.
"""

import json
import sys
import threading
import time
from functools import partial

LEAST_S = 0.1


def sre(size):
    """A regular expression that goes back and forth."""
    import re

    pattern, subject = re.compile("(a+)+$"), "a" * (18 + size.bit_length()) + "b"
    return partial(pattern.match, subject)


def json_scanner(size):
    """The scanner of json, on one large document."""
    import json

    text = json.dumps([n % 100 for n in range(size * 5000)])
    return partial(json.loads, text)


def pickler(size):
    """The C pickler, on many small objects."""
    import pickle

    values = [{f"key {n}": (n, str(n))} for n in range(size * 500)]
    return partial(pickle.dumps, values)


def sort(size):
    """list.sort, with C comparisons."""
    values = [str(n * 7919 % 1000003) for n in range(size * 2000)]
    return partial(sorted, values)


def big_power(size):
    """The power of large integers."""
    return partial(pow, 3, 2 ** (size * 40), 2**521 - 1 << size * 8)


def expat(size):
    """The C parser of XML."""
    from xml.parsers.expat import ParserCreate

    text = "<r>" + "".join(f'<a b="{n}">text<c/></a>' for n in range(size * 500)) + "</r>"

    def parse():
        ParserCreate().Parse(text, True)

    return parse


def numpy_objects(size):
    """A sort of numpy's that compares Python objects."""
    import numpy

    values = numpy.array([str(n * 7919 % 1000003) for n in range(size * 1000)], dtype=object)

    def sort_copy():
        values.copy().sort()

    return sort_copy


def openblas(size):
    """A matrix product of OpenBLAS, called by somebody who keeps the GIL."""
    import ctypes
    import os
    from pathlib import Path

    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy

    folder = Path(numpy.__file__).parent.parent / "numpy.libs"
    (file,) = folder.glob("lib*openblas*.so")
    library = ctypes.PyDLL(str(file))
    names = ["cblas_dgemm", "cblas_dgemm64_", "scipy_cblas_dgemm64_"]
    name = next(it for it in names if hasattr(library, it))
    integer = ctypes.c_int64 if "64" in name else ctypes.c_int
    product, n = getattr(library, name), int(100 * size**0.34) + 100
    product.restype = None
    a, b, c = (numpy.ones((n, n)) for _ in range(3))
    place = [ctypes.c_void_p(it.ctypes.data) for it in (a, b, c)]
    size_n, one = integer(n), ctypes.c_double(1.0)
    flags = [ctypes.c_int(it) for it in (101, 111, 111)]
    words = [*flags, size_n, size_n, size_n, one, place[0], size_n, place[1], size_n]

    def multiply(_kept=(a, b, c)):
        product(*words, ctypes.c_double(0.0), place[2], size_n)

    return multiply


def orjson_loads(size):
    """A parser in Rust."""
    import orjson

    text = orjson.dumps([n % 100 for n in range(size * 20000)])
    return partial(orjson.loads, text)


def msgpack_unpack(size):
    """A parser in Cython."""
    import msgpack

    text = msgpack.packb([n % 100 for n in range(size * 20000)])
    return partial(msgpack.unpackb, text)


def yaml_compose(size):
    """libyaml, by its Cython parser."""
    import yaml

    text = f"'{'some words ' * (size * 1000)}'"

    def compose():
        yaml.CSafeLoader(text).get_single_node()

    return compose


def regex_match(size):
    """The module regex, asked to keep the GIL."""
    import regex

    pattern, subject = regex.compile("(?:a|a)+c"), "a" * (12 + size.bit_length()) + "b"
    return partial(pattern.match, subject, concurrent=False)


def pillow_median(size):
    """A filter of Pillow."""
    from PIL import Image, ImageFilter

    image = Image.effect_noise((int(40 * size**0.5) + 40,) * 2, 50)
    return partial(image.filter, ImageFilter.MedianFilter(9))


def pydantic_validate(size):
    """A validation in Rust, by PyO3."""
    from pydantic_core import SchemaValidator, core_schema

    whole = core_schema.list_schema(core_schema.int_schema())
    values = [n % 100 for n in range(size * 10000)]
    return partial(SchemaValidator(whole).validate_python, values)


HOLDS = {
    "_sre": sre,
    "json": json_scanner,
    "_pickle": pickler,
    "list.sort": sort,
    "int.__pow__": big_power,
    "pyexpat": expat,
    "numpy (objects)": numpy_objects,
    "OpenBLAS": openblas,
    "orjson": orjson_loads,
    "msgpack": msgpack_unpack,
    "PyYAML": yaml_compose,
    "regex": regex_match,
    "Pillow": pillow_median,
    "pydantic-core": pydantic_validate,
}


def sized(make):
    """A call that takes long enough, and its CPU time."""
    size = 1
    while True:
        call = make(size)
        began = time.process_time()
        call()
        took = time.process_time() - began
        if took >= LEAST_S:
            return call, took
        size *= 2


def main():
    call, took = sized(HOLDS[sys.argv[1]])
    deadline = time.monotonic() + float(sys.argv[2])
    over = threading.Event()

    def keep():
        while time.monotonic() < deadline:
            call()
        over.set()

    def want():
        while not over.wait(0.002):
            pass

    threads = [
        threading.Thread(target=keep, name="keeping"),
        threading.Thread(target=want, name="wanting"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"took_s": took}))


main()

#!/usr/bin/env python3
"""How fast a drive brings random pieces of a file into memory: the bound of --memory.

  bench/random_reads.py FILE --piece 1773568 --threads 8 --reads 3000 --area 3500

Reads pass by the page cache (O_DIRECT) and go into an area as large as the places of a run: a small one would stay in the
processor's cache and flatter the drive. Prints MB/s.
"""
import argparse
import mmap
import os
import random
import threading
import time

PAGE = 4096


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    for name, default, what in (("piece", 1 << 20, "bytes a read"), ("threads", 8, "reads under way"), ("reads", 3000, "in all"),
                                ("area", 1024, "MiB of memory that they go to")):
        parser.add_argument("--" + name, type=int, default=default, help=what)
    o = parser.parse_args()
    piece = -(-o.piece // PAGE) * PAGE
    area = mmap.mmap(-1, o.area << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(mmap.MADV_HUGEPAGE)
    for at in range(0, len(area), PAGE):
        area[at] = 1
    places = [memoryview(area)[at:at + piece] for at in range(0, len(area) - piece + 1, piece)]
    file = os.open(o.file, os.O_RDONLY | os.O_DIRECT)
    pieces = os.fstat(file).st_size // piece
    if not places or pieces == 0:
        parser.error("file and area have to hold a piece at least")
    offsets = iter([(random.randrange(pieces) * piece, places[i % len(places)]) for i in range(o.reads)])
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                item = next(offsets, None)
            if item is None:
                return
            if os.preadv(file, [item[1]], item[0]) != piece:
                raise OSError("short read")

    workers = [threading.Thread(target=work) for _ in range(o.threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(f"{o.reads * piece / (time.perf_counter() - start) / 1e6:.0f} MB/s")


if __name__ == "__main__":
    main()

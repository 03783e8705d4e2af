"""Numbered transactions on a SQLite database until the disk goes away; and the judge of the rest.

usage: sqlite_over_kills.py write DATABASE JOURNAL-MODE     output: the reports
       sqlite_over_kills.py judge DATABASE REPORTS

Reports: `T N` before transaction N is committed, `K N` after. They are made one after the other, so
the database must hold exactly the first so many, at least up to the last one that was kept.
"""

import hashlib
import random
import sqlite3
import sys

KEPT = 400


def rows(number):
    """The rows of a transaction, which follow from its number."""
    dice = random.Random(number)
    for index in range(dice.randint(1, 20)):
        seed = b"%d %d" % (number, index)
        yield number, index, hashlib.shake_128(seed).digest(dice.choice([20, 500, 3000, 9000]))


def last_of(database):
    return database.execute("select last from progress").fetchone()[0]


def write(path, journal):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("pragma journal_mode = %s" % journal)
    # A rollback journal whose removal a crash undoes would take the last transaction with it.
    database.execute("pragma synchronous = extra")
    database.executescript(
        """create table if not exists row (number, place, noise, primary key (number, place));
           create index if not exists by_noise on row (noise);
           create table if not exists progress (last);
           insert into progress select 0 where not exists (select * from progress);"""
    )
    number = last_of(database)
    while True:
        number += 1
        database.execute("begin")
        database.executemany("insert into row values (?, ?, ?)", rows(number))
        database.execute("delete from row where number = ?", (number - KEPT,))
        database.execute("update progress set last = ?", (number,))
        print("T %d" % number, flush=True)
        database.execute("commit")
        print("K %d" % number, flush=True)


def judge(path, reports):
    tried = kept = 0
    for line in open(reports):
        verb, number = line.split()
        if verb == "T":
            tried = max(tried, int(number))
        else:
            kept = max(kept, int(number))
    database = sqlite3.connect(path)
    answer = database.execute("pragma integrity_check").fetchone()[0]
    if answer != "ok":
        sys.exit("integrity_check: %s" % answer)
    last = last_of(database)
    if not kept <= last <= tried:
        sys.exit("it ends at transaction %d; %d was kept, %d tried" % (last, kept, tried))
    found = database.execute("select number, place, noise from row order by number, place")
    expected = (row for number in range(max(1, last - KEPT + 1), last + 1) for row in rows(number))
    if found.fetchall() != list(expected):
        sys.exit("the rows are not those of transactions up to %d" % last)
    print("transaction %d kept, %d found, %d tried" % (kept, last, tried))


def main():
    if sys.argv[1] == "judge":
        return judge(sys.argv[2], sys.argv[3])
    try:
        write(sys.argv[2], sys.argv[3])
    except sqlite3.Error as error:
        print("stopped: %s" % error, file=sys.stderr)


if __name__ == "__main__":
    main()

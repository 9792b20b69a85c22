"""Files that are worked on where they lie: the same bits as in memory, in constant memory, whole or not at all."""

from __future__ import annotations

import errno
import functools
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from normcli import normalize
from normcli.engine.tiling.files import lies_in_file
from tests.conftest import is_writing
from tests.engine.test_engine import bits
from tests.marks import costly, sampled, slowly
from tests.served import serve

COMMAND = [sys.executable, "-m", "normcli"]


@pytest.fixture
def always_mapped(monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)


def test_what_is_no_whole_file_is_read_as_memory(tmp_path):
    x = np.random.default_rng(2).normal(size=(6, 8))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part, expected in [(mapped[1:], x[1:]), (mapped[:, ::2], x[:, ::2]), (mapped.T, x.T)]:
        assert not lies_in_file(part)
        assert bits(normalize(part, "ln").normalized) == bits(normalize(expected, "ln").normalized)
    fortran = np.load(tmp_path / "f.npy", mmap_mode="r")
    assert not lies_in_file(fortran)
    assert bits(normalize(fortran, "ln").normalized) == bits(normalize(x, "ln").normalized)


@sampled
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("norm", ["bn", "ln", "lrn", "wn"])
@pytest.mark.parametrize("answer", ["-fjson", "-fjsonl", "-fcsv", "-fmarkdown", "-ftable", "--print=normalized",
                                    "-oy.npy", "-oy.csv", "-oy.json", "-oy.npz"])  # fmt: skip
def test_every_answer_is_the_same_from_a_file(answer, norm, order, normcli, here, monkeypatch):
    np.save("x.npy", np.asarray(np.random.default_rng(2).normal(size=(6, 5, 8)), "f4", order))
    beside = ["--show", "stats,check", "--stats-output", "s.json"] if answer.startswith("-o") else []
    arguments = [norm, "-i", "x.npy", answer, *beside]
    plain = normcli(*arguments)
    saved = {path.name: path.read_bytes() for path in here.iterdir()}
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    monkeypatch.setattr("normcli.tensors.spool.SMALLEST_SCRATCH", 1)
    assert normcli(*arguments) == plain
    assert {path.name: path.read_bytes() for path in here.iterdir()} == saved


@pytest.fixture
def sent_on(monkeypatch):
    """Note where the bytes lie that the disk is told to begin with, and how many; tiles are small."""
    monkeypatch.setattr("normcli.engine.passes.BUFFER", 4000)
    monkeypatch.setattr("normcli.engine.passes.BLOCK", 1000)
    places = []

    def advise(descriptor, start, count, advice):
        places.append((start, count))
        raise OSError(22, "Invalid argument")  # as of what takes no advice

    monkeypatch.setattr("os.posix_fadvise", advise)
    return places


@pytest.mark.usefixtures("always_mapped")
@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system takes no advice")
@pytest.mark.parametrize("norm", ["ln", "in"])
def test_the_disk_begins_with_each_tile(norm, normcli, tmp_path, sent_on):
    x = np.random.default_rng(2).normal(size=(60, 3, 100))
    np.save(tmp_path / "x.npy", x)
    assert normcli(norm, "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy").code == 0
    header = (tmp_path / "y.npy").stat().st_size - x.nbytes
    starts, counts = zip(*sorted(sent_on), strict=True)
    assert (len(starts) > 1, sum(counts)) == (True, x.nbytes)
    assert [*starts, header + x.nbytes] == [header, *(np.cumsum(counts) + header)]


@pytest.mark.usefixtures("always_mapped")
def test_pages_of_several_tiles_are_kept(normcli, tmp_path, sent_on):
    np.save(tmp_path / "x.npy", np.random.default_rng(2).normal(size=(60, 3, 100)))
    assert normcli("bn", "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy").code == 0
    assert not sent_on


@pytest.fixture(scope="module")
def served():
    """An environment in which `normcli` takes whatever comes for large."""
    with serve({"normcli.tensors.mapped:SMALLEST_MAPPED": 1000}) as environment:
        yield environment


@pytest.fixture
def run_shell(served, tmp_path):
    """Run a line of bash in this test's folder."""
    (tmp_path / "tmp").mkdir()
    environment = served | {"TMPDIR": str(tmp_path / "tmp")}
    where = {"cwd": tmp_path, "env": environment, "executable": "bash"}
    return functools.partial(subprocess.run, shell=True, capture_output=True, check=False, **where)


SAID = b"spooled to a temporary file"


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("line", "norm", "says"),
    [
        pytest.param("cat x.npy | normcli NORM -i - -o - | cat > y.npy", "bn", True, id="pipe in and out"),
        pytest.param("normcli NORM -i x.npy -o - > y.npy", "ln", False, id="file in, pipe out"),
        pytest.param("cat x.npy | normcli NORM -i - -o y.npy --quiet", "ln", False, id="pipe in, quietly"),
        pytest.param("normcli NORM -i <(cat x.npy) -o y.npy", "lrn", True, id="process substitution"),
        pytest.param("normcli NORM -i - -o y.npy < x.npy", "ln", False, id="a file as standard input"),
        pytest.param("normcli NORM -i /dev/stdin -o y.npy < x.npy", "bn", False, id="the same by name"),
    ],
)
def test_pipes_carry_the_same_bits(line, norm, says, run_shell, tmp_path):
    x = np.random.default_rng(3).normal(size=(20, 6, 30)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    ran = run_shell(line.replace("NORM", norm))
    assert ran.returncode == 0
    assert (SAID in ran.stderr) == says
    assert bits(np.load(tmp_path / "y.npy")) == bits(normalize(x, norm).normalized)
    assert os.listdir(tmp_path / "tmp") == []


def test_a_note_is_one_line_with_the_name_and_size(run_shell, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6000.0).reshape(20, 300))
    ran = run_shell("cat x.npy | normcli ln -i - --print mean")
    assert ran.stderr == b"normcli: standard input: 48.1 kB spooled to a temporary file\n"
    assert len(ran.stdout.splitlines()) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("head -c 40000 x.npy | normcli ln -i -", "standard input is cut short"),
        ("head -c 60 x.npy | normcli ln -i -", "header is damaged"),
        ("ulimit -f 20; cat x.npy | normcli ln -i - -o -", "/tmp: File too large; set TMPDIR to"),
        ("ulimit -f 20; normcli ln -i x.npy -o -", "the output cannot be stored in"),
    ],
)
def test_pipes_that_end_badly(line, message, run_shell, tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6000.0).reshape(20, 300))
    ran = run_shell(line)
    assert (ran.returncode, ran.stdout) == (3, b"")
    assert message.encode() in ran.stderr
    assert ran.stderr.count(b"\n") == 1
    assert os.listdir(tmp_path / "tmp") == []


def write_drawn(path, shape):
    """Write a file of float32, slice by slice."""
    x = np.lib.format.open_memmap(path, "w+", "f4", shape)
    rng = np.random.default_rng(0)
    for part in x:
        part[...] = rng.standard_normal(part.shape, dtype="f4")
    x.flush()


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A file of 48 MiB."""
    path = tmp_path_factory.mktemp("big") / "x.npy"
    write_drawn(path, (12, 16, 256, 256))
    yield path
    path.unlink()


def measure_peak(*arguments, stdin=None, stdout=-1) -> int:
    """Run a command line, to which files of a MiB are large, and return its largest resident memory, in MiB."""
    code = (
        "from normcli.tensors import mapped\nfrom normcli.cli.run import run\nmapped.SMALLEST_MAPPED = 1 << 20\n"
        f"code = run({[str(a) for a in arguments]!r})"
    )
    return measure_peak_of_code(code, stdin=stdin, stdout=stdout)


def measure_peak_of_code(lines: str, stdin=None, stdout=-1) -> int:
    """Run lines of Python, which may set `code`, and return the largest resident memory of the process, in MiB."""
    code = (
        f"import sys\ncode = 0\n{lines}\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "sys.stderr.write(peak.split()[1])\n"
        "sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", code], stdin=stdin, stdout=stdout, stderr=-1, check=True)
    return int(ran.stderr.split()[-1]) // 1024


@costly
@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
@pytest.mark.parametrize(
    ("line", "most"),
    [
        *((line, 75) for line in ("bn -o y.npy", "in -o y.npy", "minmax --keep C -o y.npy", "bn --print var")),
        *(
            ("maxabs --keep C -o y.npy", 75),
            ("midrange --keep C -o y.npy", 90),
            ("robust --keep C -o y.npy", 120),
        ),
    ],
)
def test_memory_stays_far_below_the_size_of_the_file(line, most, big, here):
    assert measure_peak(*line.split(), "-i", big) < most


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
def test_identify_of_a_large_file_takes_as_little_and_sees_all_of_it(big, tmp_path, normcli):
    x = np.load(big, mmap_mode="r").reshape(12 * 1024, 1024)
    rows, y = tmp_path / "x.npy", np.lib.format.open_memmap(tmp_path / "y.npy", "w+", "f4", x.shape)
    np.save(rows, x)
    for start in range(0, len(x), 4096):
        part = x[start : start + 4096].astype("f8")
        rest = part - part.mean(1, keepdims=True)
        y[start : start + 4096] = rest / np.sqrt((rest**2).mean(1, keepdims=True) + 1e-5)
    y.flush()
    asked = ("identify", "-i", rows, "--actual", tmp_path / "y.npy")
    assert measure_peak(*asked) < 85  # of 96 MiB
    y[-2, -1] += 1.0
    y.flush()
    ran = normcli(*asked)
    assert (ran.code, "y is ln, except at (12286, 1023)" in " ".join(ran.out.split())) == (1, True)


@pytest.fixture(scope="module")
def long_table(tmp_path_factory):
    """A table of 4 MB, one of whose columns is text."""
    path = tmp_path_factory.mktemp("table") / "x.csv"
    rows = np.random.default_rng(0).normal(size=(1000, 4)).round(6).tolist()
    lines = "".join(f"{a},{b},name {a},{c},{d}\n" for a, b, c, d in rows)
    path.write_text("a,b,name,c,d\n" + 80 * lines)
    yield path
    path.unlink()


@costly
@sampled
@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
@pytest.mark.parametrize("extra", ["with pyarrow", "without pyarrow"])
@pytest.mark.parametrize(
    "arguments", [("--print", "mean"), ("-o", "y.csv"), ("-o", "-", "-f", "tsv")], ids=" ".join
)
def test_long_tables_take_little_memory(arguments, extra, long_table, here, monkeypatch):
    if extra == "without pyarrow":
        (here / "pyarrow.py").write_text("raise ImportError")
        monkeypatch.setenv("PYTHONPATH", str(here))
        most = 75
    else:
        pytest.importorskip("pyarrow")
        most = 70 + measure_peak_of_code("import numpy, pyarrow.csv")
    assert measure_peak("zscore", "-i", long_table, "--exclude", "name", *arguments) < most


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
def test_a_check_of_two_large_files_takes_no_more(big, tmp_path, normcli):
    assert normcli("bn", "-i", big, "-o", tmp_path / "y.npy").code == 0
    assert measure_peak("check", "bn", "-i", big, "--actual", tmp_path / "y.npy", "--max-ulp", "0.501") < 75


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
def test_so_do_a_backward_pass_of_many_groups_and_parameters_and_its_check(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("x", "dy"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((16, 65_536), dtype="f4"))
    given = ["-i", tmp_path / "x.npy", "--dy", tmp_path / "dy.npy"]
    assert measure_peak("backward", "bn", *given, "-o", tmp_path / "dx.npy", "--threads", "2") < 70
    check = ["check", "bn", "--backward", "--actual-dx", tmp_path / "dx.npy", "--max-ulp", "0.501"]
    assert measure_peak(*check, *given, "--threads", "2") < 70


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux' /proc")
def test_memory_stays_as_low_when_both_ends_are_pipes(big, tmp_path):
    with subprocess.Popen(["cat", big], stdout=-1) as cat, open(tmp_path / "y.npy", "wb") as target:
        assert measure_peak("bn", "-i", "-", "-o", "-", stdin=cat.stdout, stdout=target) < 75
    assert os.path.getsize(tmp_path / "y.npy") == os.path.getsize(big)


@costly
@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux' /proc")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
@pytest.mark.parametrize("delay", [0.0, 0.02])
def test_a_signal_in_the_middle_leaves_the_old_output(number, code, delay, big, tmp_path):
    target = tmp_path / "y.npy"
    target.write_bytes(b"old")
    process = subprocess.Popen([*COMMAND, "bn", "-i", str(big), "-o", str(target)], stdout=-1, stderr=-1)
    deadline = time.monotonic() + 60
    while not is_writing(process, tmp_path):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code
    assert b"Traceback" not in err
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["y.npy"]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".json", ".csv"])
@pytest.mark.parametrize("mapped", [False, True])
def test_a_disk_without_room_is_seen_before_anything_is_written(suffix, mapped, normcli, tmp_path, monkeypatch):
    class Disk:
        f_bavail = f_bfree = f_blocks = 3
        f_frsize = 512

    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 300)))
    monkeypatch.setattr("os.fstatvfs", lambda descriptor: Disk)
    if mapped:
        monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    ran = normcli("ln", "-i", tmp_path / "x.npy", "-o", tmp_path / f"y{suffix}")
    needed = {".npy": r"48(\.1)?", ".npz": "48"}.get(suffix, "12")
    assert (ran.code, ran.raw) == (3, b"")
    assert re.search(rf"No space left on device \({needed} kB are needed, 1.54 kB are free\)", ran.err)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_a_disk_that_cannot_reserve_room_is_written_to_all_the_same(normcli, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    x = np.random.default_rng(0).normal(size=(20, 300))
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr("os.posix_fallocate", refuse)
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    assert normcli("ln", "-i", tmp_path / "x.npy", "-o", tmp_path / "y.npy").code == 0
    assert bits(np.load(tmp_path / "y.npy")) == bits(normalize(x, "ln").normalized)


@pytest.mark.usefixtures("always_mapped")
@pytest.mark.parametrize("suffix", [".npy", ".safetensors", *slowly([".npz", ".csv"])])
def test_a_pipe_takes_what_is_calculated_from_disk(suffix, normcli, here):
    np.save("x.npy", np.random.default_rng(2).normal(size=(6, 8)))
    assert normcli("bn", "-i", "x.npy", "-o", f"y{suffix}").code == 0
    os.mkfifo(f"pipe{suffix}")
    reader = os.open(f"pipe{suffix}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert normcli("bn", "-i", "x.npy", "-o", f"pipe{suffix}").code == 0
        got = os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    if suffix == ".npz":  # zip marks what was written without seeking
        (here / "got.npz").write_bytes(got)
        np.testing.assert_array_equal(np.load("got.npz")["normalized"], np.load("y.npz")["normalized"])
    else:
        assert got == (here / f"y{suffix}").read_bytes()

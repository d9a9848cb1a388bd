"""A store in a bucket: what several machines write, what a cut-off writer leaves, and what an erasure leaves."""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import deltalake
import httpx
import msgspec
import polars as pl
import pytest

from seatrial.cli.app import run
from seatrial.errors import ErasedError, InputError, StoreError, UsageError
from seatrial.records import Trace
from seatrial.store import Store, erase
from seatrial.store.bucket import Bucket, normal
from seatrial.store.layout import followed
from seatrial.store.lease import Lease, Overtaken
from seatrial.store.remote import MIRRORS, RemoteStore, mirror_folder

Make = Callable[..., Trace]
Put = Callable[[Store, Sequence[Trace]], str]
Machine = Callable[..., RemoteStore]

URL = "s3://a-bucket/team/store"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # heavy: only in the process that runs these tests

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An S3-compatible server with one empty bucket, as the environment names it."""
    for name, value in {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": server,
    }.items():
        monkeypatch.setenv(name, value)
    import boto3

    client = boto3.client("s3")
    httpx.post(f"{server}/moto-api/reset").raise_for_status()
    client.create_bucket(Bucket="a-bucket")
    return client


@pytest.fixture
def machine(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Open the store as another machine would: with folders of its own."""

    def at(name: str, *, create: bool = True) -> RemoteStore:
        monkeypatch.setenv(MIRRORS, str(tmp_path / name))
        opened = Store.open(URL, create=create)
        assert isinstance(opened, RemoteStore)
        opened._mirror._looked = float("-inf")
        return opened

    return at


def now(store: RemoteStore) -> RemoteStore:
    """The store, as it is in a second from now at the latest."""
    store._mirror._looked = float("-inf")
    return store


def objects(s3: Any) -> dict[str, bytes]:
    """Everything in the bucket, read by another client than the one under test."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="a-bucket")
    keys = [o["Key"] for page in pages for o in page.get("Contents", [])]
    return {k.removeprefix("team/store/"): s3.get_object(Bucket="a-bucket", Key=k)["Body"].read() for k in keys}


def test_what_one_machine_commits_another_reads(machine: Machine, trace: Make, put: Put) -> None:
    one, two = machine("one"), machine("two")
    traces = [trace(f"session-{n}", 3, user="user-0123456789abcdef") for n in range(4)]
    stamp = put(one, traces)
    assert now(two).data_version == stamp
    assert two.session_ids() == one.session_ids() == [t.id for t in traces]
    assert two.trace("session-2") == traces[2]
    assert two.table("steps").collect().equals(one.table("steps").collect())
    assert two.pseudonyms()[0].key == one.pseudonyms()[0].key
    assert one.verify().ok
    assert two.verify().ok


def test_a_blob_comes_when_it_is_asked_for(machine: Machine, trace: Make, put: Put) -> None:
    put(machine("one"), [trace("session-a"), trace("session-b")])
    two = machine("two")
    assert not list((two.path / "blobs").rglob("*.z"))
    two.trace("session-a")
    assert len(list((two.path / "blobs").rglob("*.z"))) == 1


def test_earlier_versions_are_read_on_a_machine_that_was_not_there(machine: Machine, trace: Make, put: Put) -> None:
    one = machine("one")
    stamps = [put(one, [trace(f"session-{n}", 2)]) for n in range(5)]
    two = machine("two")
    for n, stamp in enumerate(stamps, 1):
        assert two.table("sessions", version=stamp).collect().height == n
    # Segments of the version log are joined, so that there are few, and nothing of the old ones stays.
    segments = two._lease.read().segments
    assert len(segments) <= 3
    assert [s for s in two.bucket.list("versions") if s.key not in segments] == []


def test_the_bucket_is_a_table_that_other_programs_read(s3: Any, machine: Machine, trace: Make, put: Put) -> None:
    put(machine("one"), [trace(f"session-{n}", 3) for n in range(3)])
    options = {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"], "AWS_ALLOW_HTTP": "true"}
    table = deltalake.DeltaTable(f"{URL}/tables/steps", storage_options=options)
    assert pl.DataFrame(table.to_pyarrow_table() if hasattr(table, "to_pyarrow_table") else table).height == 9


@pytest.mark.parametrize(("machines", "commits"), [(2, 2), pytest.param(4, 6, marks=pytest.mark.full)])
def test_writers_on_several_machines_lose_nothing(
    machine: Machine, trace: Make, put: Put, machines: int, commits: int
) -> None:
    stores = [machine(f"machine-{n}") for n in range(machines)]
    failures: list[BaseException] = []

    def write(n: int) -> None:
        try:
            for i in range(commits):
                put(stores[n], [trace(f"session-{n}-{i}", 2)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(machines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    expected = sorted(f"session-{n}-{i}" for n in range(machines) for i in range(commits))
    for store in (*stores, machine("fresh")):
        assert now(store).session_ids() == expected
        assert store.versions.head().number == machines * commits
    assert stores[0].verify().ok


def test_a_writer_that_was_overtaken_publishes_nothing(machine: Machine, trace: Make, put: Put) -> None:
    """It wrote table files and log entries; the one that took over uses the same names, and what it writes stands."""
    one, two = machine("one"), machine("two")
    put(one, [trace("session-0")])
    now(two).data_version  # noqa: B018
    steal = one.versions.append

    def overtaken(version: Any) -> None:
        one._mirror.push_tables(version.tables)  # everything but the head is in the bucket
        head = one._lease._bucket.get("head")
        assert head is not None
        # The other machine finds that this one has been silent for longer than a lease.
        silent = msgspec.structs.replace(one._lease.head, until=time.time() - 1)
        assert one.bucket.replace("head", msgspec.json.encode(silent), head.tag)
        put(two, [trace("session-2", 5)])
        steal(version)

    one.versions.append = overtaken  # type: ignore[method-assign]
    with pytest.raises(Overtaken, match="took over"):
        put(one, [trace("session-1")])
    one.versions.append = steal  # type: ignore[method-assign]
    fresh = machine("fresh")
    for store in (now(one), now(two), fresh):
        assert store.session_ids() == ["session-0", "session-2"]
        assert store.table("steps").collect().height == 7
    # Doing it again is all that it takes.
    put(one, [trace("session-1")])
    assert now(two).session_ids() == ["session-0", "session-1", "session-2"]
    assert two.verify().ok
    assert now(fresh).table("steps").collect().height == 9


def test_a_writer_that_died_leaves_nothing_that_counts(machine: Machine, trace: Make, put: Put) -> None:
    one = machine("one")
    put(one, [trace("session-0")])

    class Died(BaseException):
        pass

    def die(*_: object) -> None:
        raise Died

    publish, give = one._lease.publish, one._lease._give_back
    one._lease.publish, one._lease._give_back = die, lambda: None  # type: ignore[method-assign, assignment]
    with pytest.raises(Died):
        put(one, [trace("session-1", 4)])
    del publish, give
    two = machine("two")
    two._lease._length = one._lease._length = 0.2
    silent = msgspec.structs.replace(two._lease.read(), until=0.0)
    two.bucket.put("head", msgspec.json.encode(silent))
    put(two, [trace("session-2")])
    again = machine("one")
    assert again.session_ids() == ["session-0", "session-2"]
    put(again, [trace("session-3")])
    assert now(two).session_ids() == ["session-0", "session-2", "session-3"]
    assert two.verify().ok
    assert again.verify().ok


def test_a_turn_is_kept_while_its_holder_lives_and_lost_when_it_is_silent(machine: Machine) -> None:
    store = machine("one")
    mine, other = Lease(store.bucket, lease=0.6, wait=0.3), Lease(store.bucket, lease=0.6, wait=5.0)
    impatient = Lease(store.bucket, lease=0.6, wait=0.3)
    with mine.turn(lambda: None):
        time.sleep(1.0)  # longer than the lease: it has been renewed meanwhile
        with pytest.raises(StoreError, match="has been writing to the store"), impatient.turn(lambda: None):
            pass
        mine._ended.set()  # from now on it is silent, as if its process stood still
        with other.turn(lambda: None):
            with pytest.raises(Overtaken):
                mine.sure()
            assert other.head.holder == other._me


def test_a_request_that_was_sent_twice_is_no_lost_race(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a conditional request got lost, and its repetition meets what it wrote itself."""
    store = machine("one")
    with store.writing():
        replace = Bucket.replace

        def twice(self: Bucket, key: str, data: bytes, tag: str) -> str | None:
            assert replace(self, key, data, tag) is not None
            return replace(self, key, data, tag)

        monkeypatch.setattr(Bucket, "replace", twice)
        store._lease.sure()


def test_erasing_leaves_nothing_in_the_bucket_or_in_other_machines_folders(
    s3: Any, machine: Machine, trace: Make, put: Put
) -> None:
    secret = "a sentence that only jane ever wrote"
    name = "0123456789abcdef-jane"
    one, two = machine("one"), machine("two")
    for n in (2, 4, 6):
        put(one, [trace(name, n, user="user-jane000000000000", mark=secret), trace("fedcba9876543210-bob", n)])
    old = one.data_version
    now(two).trace(name)
    two.table("steps").collect()
    orphan = f"tables/steps/_delta_log/{999:020d}.json"
    two.bucket.put(orphan, b'{"commitInfo": {"left by": "' + name.encode() + b'"}}')
    one.save_result("rank", "about jane", {"result": {"session": name}})

    done = erase(two, [name], subjects=["user-jane000000000000"])
    assert done.proof.ok
    assert done.proof.files > len(objects(s3))
    remaining = objects(s3)
    for key, data in remaining.items():
        texts = [key.encode(), data]
        texts += [zlib.decompress(data)] if key.endswith(".z") else []
        texts += [str(pl.read_parquet(data).rows()).encode()] if key.endswith(".parquet") else []
        for text in texts:
            assert name.encode() not in text, key
            assert secret.encode() not in text, key
            assert b"user-jane" not in text, key
    assert orphan not in remaining
    assert "erasing.json" not in remaining
    # The other machine lets go of what it holds as soon as it looks.
    assert now(one).session_ids() == ["fedcba9876543210-bob"]
    assert name.encode() not in b"".join(p.read_bytes() + p.name.encode() for p in one.path.rglob("*") if p.is_file())
    with pytest.raises(ErasedError):
        one.table("sessions", version=old).collect()
    put(one, [trace("session-after")])
    for store in (now(one), now(two), machine("fresh")):
        assert store.session_ids() == ["fedcba9876543210-bob", "session-after"]
        assert store.verify().ok


def test_an_erasure_that_was_cut_short_is_ended_by_another_machine(
    s3: Any, machine: Machine, trace: Make, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "0123456789abcdef-jane"
    one, two = machine("one"), machine("two")
    put(one, [trace(name, 4), trace("session-b")])
    now(two).data_version  # noqa: B018

    def cut(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(one._mirror, "sweep", cut)
        with pytest.raises(KeyboardInterrupt):
            erase(one, [name])
    done = erase(two, [])
    assert done.proof.ok
    left = objects(s3)
    assert not any(name.encode() in k.encode() + v for k, v in left.items())
    assert "erasing.json" not in left
    assert now(one).verify().ok


def test_a_bucket_that_keeps_versions_is_no_proof(s3: Any, machine: Machine, trace: Make, put: Put) -> None:
    s3.put_bucket_versioning(Bucket="a-bucket", VersioningConfiguration={"Status": "Enabled"})
    store = machine("one")
    put(store, [trace("0123456789abcdef-jane")])
    done = erase(store, ["0123456789abcdef-jane"])
    assert not done.proof.ok
    assert any("keeps earlier versions" in found for found in done.proof.found)


def test_verify_reads_the_buckets_own_bytes(s3: Any, machine: Machine, trace: Make, put: Put) -> None:
    store = machine("one")
    put(store, [trace("session-a"), trace("session-b")])
    assert store.verify().ok
    blob = next(k for k in objects(s3) if k.endswith(".z"))
    s3.put_object(Bucket="a-bucket", Key=f"team/store/{blob}", Body=b"damaged")
    found = store.verify()
    assert not found.ok
    assert any("damaged" in p for p in found.problems)
    s3.delete_object(Bucket="a-bucket", Key=f"team/store/{blob}")
    assert any("is missing" in p for p in store.verify().problems)


def test_verify_names_a_parquet_file_that_the_bucket_lost(s3: Any, machine: Machine, trace: Make, put: Put) -> None:
    store = machine("one")
    put(store, [trace("session-a")])
    lost = next(k for k in objects(s3) if k.startswith("tables/steps/part"))
    s3.delete_object(Bucket="a-bucket", Key=f"team/store/{lost}")
    found = store.verify()
    assert any("steps" in p for p in found.problems)


def test_results_are_seen_everywhere(machine: Machine) -> None:
    one, two = machine("one"), machine("two")
    ident = one.save_result("rank", "all", {"command": "rank", "result": {"models": []}})
    assert [r.id for r in two.results()] == [ident]
    assert two.result(ident).name == "all"


def test_a_place_that_is_no_store(s3: Any, machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no store here") as none:
        machine("one", create=False)
    assert none.value.hint == f"make one with: seatrial ingest PATH --store {URL}"
    with pytest.raises(InputError) as cleaned_up:
        Store.open(Path(URL))
    assert cleaned_up.value.hint == none.value.hint
    s3.put_object(Bucket="a-bucket", Key="team/store/holiday.jpg", Body=b"x")
    with pytest.raises(InputError, match="not a store and is not empty"):
        machine("one")


def test_a_folder_that_follows_a_store_which_gave_way_is_not_mixed_up(s3: Any, machine: Machine) -> None:
    machine("one")
    for key in objects(s3):
        s3.delete_object(Bucket="a-bucket", Key=f"team/store/{key}")
    with pytest.raises(StoreError, match="still follows it"):
        machine("one")
    machine("two")
    with pytest.raises(StoreError, match="follows another store"):
        machine("one")


@pytest.mark.parametrize("writes", range(3))
@pytest.mark.parametrize("arrived", [False, True])
def test_a_creation_that_was_cut_off_goes_on(
    machine: Machine, trace: Make, put: Put, writes: int, arrived: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network goes at the first, second or third object, before or after the bucket has it."""
    create, made = Bucket.create, []

    def cut(self: Bucket, key: str, data: bytes) -> str | None:
        made.append(key)
        if len(made) <= writes:
            return create(self, key, data)
        if arrived:
            create(self, key, data)
        raise StoreError("the network has gone")

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "create", cut)
        with pytest.raises(StoreError, match="the network has gone"):
            machine("one")
    one = machine("one")
    put(one, [trace("s1", 2)])
    two = machine("two", create=False)
    assert two.trace("s1").id == "s1"
    assert two.data_version == one.data_version


@pytest.mark.parametrize("create", [False, True])
def test_a_bucket_that_is_not_there_is_said_so(machine: Machine, create: bool) -> None:
    with pytest.raises(StoreError, match="there is no bucket no-such-bucket ") as missing:
        Store.open("s3://no-such-bucket/x", create=create)
    assert "make it first" in str(missing.value.hint)
    bucket = Bucket("s3://no-such-bucket/x")
    for use in (
        lambda: bucket.put("k", b"v"),
        lambda: bucket.create("k", b"v"),
        lambda: bucket.replace("k", b"v", "tag"),
        lambda: bucket.changed("k", None),
        lambda: list(bucket.list()),
        lambda: bucket.delete(["k"]),
    ):
        with pytest.raises(StoreError, match="there is no bucket no-such-bucket "):
            use()


@pytest.mark.parametrize(
    ("said", "read", "hint"),
    [
        (
            "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 2.9ms - Server returned "
            "non-2xx status code: 403 Forbidden: denied",
            "there are no credentials for the object store",
            "set AWS_ACCESS_KEY_ID",
        ),
        ("<Error><Code>InvalidAccessKeyId</Code></Error>", "does not know these credentials", "check AWS_ACCESS"),
        ("status code: 403 Forbidden: <Error><Code>AccessDenied</Code>", "may not use the bucket a-bucket", "to list"),
        ("<Error><Code>PermanentRedirect</Code></Error>", "a-bucket is in another region", "AWS_REGION"),
        ("HTTP error: error sending request", "the object store cannot be reached", "AWS_ENDPOINT_URL"),
        (
            'boom: <?xml version="1.0"?> <Error><Code>SlowDown</Code><Message>Reduce\nyour rate</Message></Error>',
            "does not answer as it should: SlowDown: Reduce your rate",
            "check the bucket",
        ),
        (
            "Generic S3 error: odd\n\nDebug source:\nlong",
            "does not answer as it should: Generic S3 error: odd",
            "check",
        ),
    ],
)
def test_what_an_object_store_says_is_told_in_words(s3: Any, said: str, read: str, hint: str) -> None:
    told = Bucket(URL)._unreachable(OSError(said))
    assert told.message.endswith(read)
    assert hint in str(told.hint)


def test_urls() -> None:
    assert (
        normal("s3:/a-bucket/x/") == normal(Path("s3://a-bucket/x")) == normal("s3://a-bucket/x") == "s3://a-bucket/x"
    )
    assert normal("s3://a-bucket") == "s3://a-bucket"
    for wrong in ("gs://a-bucket/x", "s3://", "https://example.com/x"):
        with pytest.raises(UsageError, match="a store is a folder or s3"):
            Store.open(wrong)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("s3://bk/st", "s3://bk/st: a bucket's name has 3 to 63 characters, and 'bk' has 2"),
        (Path("s3://bk/st"), "s3://bk/st: a bucket's name has 3 to 63 characters, and 'bk' has 2"),
        ("s3://" + "b" * 64, f"a bucket's name has 3 to 63 characters, and {'b' * 64!r} has 64"),
        ("s3:///x", "s3:///x: it names no bucket"),
        ("s3://My_Bucket/x", "a bucket's name is of small letters, digits, dots and hyphens"),
        ("gs://a-bucket/x", "not gs://a-bucket/x"),
    ],
)
def test_a_url_that_is_none_is_told_why(url: str | Path, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        normal(url)
    assert said in refused.value.message
    assert said.startswith("a bucket") or refused.value.message.endswith(said)


def test_the_folder_itself_opens_the_store_that_it_follows(machine: Machine, trace: Make, put: Put) -> None:
    """Worker processes are given the folder; what has not come to it yet comes when they ask."""
    put(machine("one"), [trace("session-a")])
    two = machine("two")
    assert two.path == mirror_folder(URL)
    assert followed(two.path) == URL
    by_folder = Store.open(two.path)
    assert isinstance(by_folder, RemoteStore)
    assert by_folder.trace("session-a").id == "session-a"


def test_the_command_line_takes_a_bucket_for_a_store(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read, extract with worker processes that are given the folder, erase with proof, from two machines."""
    logs = tmp_path / "logs"
    logs.mkdir()
    for n in range(3):
        name = f"0123456789abcdef-{n}"
        lines = [
            {"type": who, "uuid": f"{name}-{who}", "sessionId": name, "timestamp": f"2026-01-01T00:0{n}:00.000Z",
             "message": {"role": who, "content": text, **more}}
            for who, text, more in [
                ("user", "please fix it", {}),
                ("assistant", [{"type": "text", "text": "done"}], {"id": f"m{n}", "model": "x", "usage": {}}),
            ]
        ]  # fmt: skip
        (logs / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def call(where: str, *arguments: str) -> Any:
        monkeypatch.setenv(MIRRORS, str(tmp_path / where))
        capsys.readouterr()
        status = run([*arguments, "--store", URL, "--json"])
        out, err = capsys.readouterr()
        assert status == 0, err
        return json.loads(out)["result"]

    assert call("one", "ingest", str(logs), "--user", "jane")["added"] == 3
    assert call("two", "ingest", str(logs), "--user", "jane")["known"] == 3
    assert len(call("two", "sessions", "list")["sessions"]) == 3
    call("two", "signals")
    assert machine("one").table("outcomes").collect().height == 3
    assert call("one", "forget", "jane", "--yes")["proof"]["ok"]
    assert call("two", "sessions", "list")["sessions"] == []
    monkeypatch.setenv(MIRRORS, str(tmp_path / "one"))
    assert run(["ingest", str(logs), "--keep-raw", "--store", URL]) == 2
    assert "keeps no originals" in capsys.readouterr().err

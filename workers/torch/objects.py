"""Objects that are written once, in one bucket of an S3 server, as store/objects/object-store.ts has them: a put carries
`If-None-Match: *` and its SHA-256 as metadata, the first writer wins, and a reader checks the digest."""

import hashlib
import json
import os
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from fault import Fault

Ref = dict
"""`key`, `sha256` and `bytes`."""

MISSING = {"404", "NoSuchKey", "NotFound", "NoSuchBucket"}
TAKEN = {"412", "PreconditionFailed"}
FULL = {"InsufficientStorage", "507", "XMinioStorageFull", "QuotaExceeded", "ENOSPC"}
CREDENTIALS = {
    "403",
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccountProblem",
    "InvalidToken",
    "ExpiredToken",
    "XAdminUserNotFound",
}
PASSING = {"RequestTimeout", "SlowDown", "ConditionalRequestConflict", "OperationAborted", "409"}


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def ref_of(key: str, data: bytes) -> Ref:
    return {"key": key, "sha256": sha256_of(data), "bytes": len(data)}


class ObjectStore:
    def __init__(self, address: str, access_key: str, secret_key: str, bucket: str) -> None:
        self.address = address
        self.bucket = bucket
        self.client = boto3.client(
            "s3",
            endpoint_url=address,
            region_name="us-east-1",
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            config=Config(
                s3={"addressing_style": "path"},
                connect_timeout=30,
                read_timeout=30,
                retries={"total_max_attempts": 3, "mode": "standard"},
                # Digests are Gradus' own; not every server knows the checksums that boto3 adds.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )

    @staticmethod
    def connect(environment: "os._Environ[str] | dict[str, str]") -> "ObjectStore":
        """Raises Fault("store", "unconditional-writes") where two writers of one key could overwrite each other."""
        names = ("GRADUS_S3_URL", "GRADUS_S3_ACCESS_KEY", "GRADUS_S3_SECRET_KEY")
        missing = [name for name in names if not environment.get(name)]
        if missing:
            raise Fault("infra", "settings", f"set {', '.join(missing)}: the worker's surroundings are not described")
        given = [environment[name] for name in names]
        store = ObjectStore(*given, environment.get("GRADUS_S3_BUCKET") or "gradus")
        store._create_bucket()
        store._probe()
        return store

    def get(self, ref: Ref) -> bytes:
        """Raises Fault("store", "corrupt-object") where the server has other bytes."""
        data = self._call(f"get {ref['key']}", self._download, ref["key"])
        if len(data) == ref["bytes"] and sha256_of(data) == ref["sha256"]:
            return data
        raise Fault(
            "store",
            "corrupt-object",
            f"{ref['key']} in bucket {self.bucket} at {self.address} has {len(data)} bytes with SHA-256 "
            f"{sha256_of(data)}, expected {ref['bytes']} with {ref['sha256']}: it was damaged or replaced. "
            "Restore it, or go back to an earlier one",
        )

    def get_json(self, ref: Ref):
        return parse_json(self.get(ref), ref["key"])

    def head(self, key: str) -> Ref | None:
        """The ref of what lies at a key. What was put there without a digest is read and hashed."""

        def ask() -> Ref | None:
            try:
                found = self.client.head_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if code_of(error) in MISSING:
                    return None
                raise
            digest = found["Metadata"].get("sha256") or sha256_of(self._download(key))
            return {"key": key, "sha256": digest, "bytes": found["ContentLength"]}

        return self._call(f"head {key}", ask)

    def put_once(self, key: str, data: bytes, content_type: str) -> Ref:
        """The ref of what is there when this is done, be it of an earlier writer."""
        mine = ref_of(key, data)

        def put() -> bool:
            try:
                self.client.put_object(
                    Bucket=self.bucket,
                    Key=key,
                    Body=data,
                    IfNoneMatch="*",
                    ContentType=content_type,
                    Metadata={"sha256": mine["sha256"]},
                )
                return True
            except ClientError as error:
                if code_of(error) in TAKEN:
                    return False
                raise

        # A server may refuse a long body by closing the connection in the middle of it: it is asked first.
        there = self.head(key) if len(data) > 2**16 else None
        if there is None and self._call(f"put {key}", put):
            return mine
        there = there or self.head(key)
        if there is None:
            message = f"{key} was there and was deleted at the same moment: try again"
            raise Fault("store", "unavailable", message, retryable=True)
        return there

    def keep_json(self, key: str, value: dict) -> tuple[Ref, dict]:
        """Writes a value unless the key is taken, and gives what is kept there: answer from that, never from `value`."""
        data = json_bytes(value)
        ref = self.put_once(key, data, "application/json")
        return ref, value if ref["sha256"] == sha256_of(data) else self.get_json(ref)

    def find_json(self, key: str) -> dict | None:
        ref = self.head(key)
        return None if ref is None else self.get_json(ref)

    def _download(self, key: str) -> bytes:
        return self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def _create_bucket(self) -> None:
        def create() -> None:
            try:
                self.client.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if code_of(error) not in MISSING:
                    raise
                try:
                    self.client.create_bucket(Bucket=self.bucket)
                except ClientError as late:
                    # Another worker that starts at the same moment made it.
                    if code_of(late) != "BucketAlreadyOwnedByYou":
                        raise

        self._call(f"create bucket {self.bucket}", create)

    def _probe(self) -> None:
        key = f"probe/{uuid.uuid4()}"
        self.put_once(key, b"first", "text/plain")
        second = self.put_once(key, b"second", "text/plain")
        self._call(f"remove {key}", lambda: self.client.delete_object(Bucket=self.bucket, Key=key))
        if second["sha256"] == sha256_of(b"second"):
            raise Fault(
                "store",
                "unconditional-writes",
                f"the object store at {self.address} ignores If-None-Match: *, so attempts of one step could overwrite "
                "each other. Use a server with conditional writes: AWS S3, MinIO, versitygw",
            )

    def _call(self, doing: str, operation, *args):
        try:
            return operation(*args)
        except ClientError as error:
            raise self._fault(code_of(error), doing, error) from error
        except (BotoCoreError, HTTPClientError, OSError) as error:
            message = f"object store at {self.address}, {doing}: {error}. Is it up, and is the address right?"
            raise Fault("store", "unreachable", message, retryable=True) from error

    def _fault(self, code: str, doing: str, error: ClientError) -> Fault:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        type, advice, retryable = "refused", "The server does not allow this request: look into its log", False
        if code in FULL:
            type, advice, retryable = "disk-full", "Make room on the disk of the object store", True
        elif code == "RequestTimeTooSkewed":
            type, advice, retryable = "clock", "Set the clock of this machine", True
        elif code in CREDENTIALS:
            type, advice, retryable = "credentials", "Correct the access key and secret key of this process", True
        elif code in MISSING:
            type, advice = "missing-object", "It was deleted, or never written: go back to an earlier one"
        elif code in PASSING or status >= 500:
            type, advice, retryable = "unavailable", "It is tried again; look into the log of the server", True
        return Fault("store", type, f"object store at {self.address}, {doing}: {error}. {advice}", retryable)


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def json_bytes(value) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def parse_json(data: bytes, what: str):
    try:
        return json.loads(data)
    except ValueError as error:
        message = f"{what} is not JSON ({error}): it was written by other software"
        raise Fault("store", "corrupt-object", message) from error

#!/usr/bin/env python3
"""Verifies receipts of Lex as docs/receipts.md specifies, with nothing but Python's
standard library. The numbers after § are the sections of that page; replay.py has 5 to 15."""
import argparse, base64, decimal, hashlib, hmac, json, re, sys

import replay


class Fault(Exception):
    """A check that failed: its name and what is wrong."""


def need(check, holds, what):
    if not holds:
        raise Fault(f"{check}: {what}")


def sha256(*parts):
    return hashlib.sha256(b"".join(parts))


# §1 Numbers and JSON. All numbers are read as doubles.

def es6(x):
    if x == 0:
        return "0"
    sign, digits, exponent = decimal.Decimal(repr(x)).as_tuple()
    digits = "".join(map(str, digits))
    n = len(digits) + exponent  # the number is 0.digits times 10^n
    digits = digits.rstrip("0")
    k = len(digits)
    if k <= n <= 21:
        text = digits + "0" * (n - k)
    elif 0 < n <= 21:
        text = digits[:n] + "." + digits[n:]
    elif -6 < n <= 0:
        text = "0." + "0" * -n + digits
    else:
        text = digits[0] + ("." + digits[1:] if k > 1 else "") + f"e{n - 1:+d}"
    return "-" * sign + text


def canonical(v):
    if isinstance(v, dict):
        names = sorted(v, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(v[name]) for name in names) + "}"
    if isinstance(v, list):
        return "[" + ",".join(map(canonical, v)) + "]"
    return es6(v) if isinstance(v, float) else json.dumps(v, ensure_ascii=False)


def parse(text):
    def no_twins(pairs):
        need("form", len(dict(pairs)) == len(pairs), "a member occurs twice")
        return dict(pairs)

    try:
        v = json.loads(text.decode(), object_pairs_hook=no_twins, parse_int=float, parse_float=float, parse_constant=float)
        need("form", canonical(v).encode() == text, "it is not canonical JSON")
    except (ValueError, RecursionError, decimal.InvalidOperation):
        raise Fault("form: it is not JSON of finite numbers") from None
    return v


# §2 The record and its id.

def link_of(record, r):
    member = b'"id":' + canonical(r["id"]).encode() + b","
    digest = sha256(*record.split(member, 1)).hexdigest().upper()
    return ("TCR-" if r["tool"] else "KRN-") + digest


# §3 Members, by type, and §4 Form.

TEXTS = """id session_id prev nonce version policy mode endpoint dialect model outcome denied_by category
    attack_type pre_eval_label health_band governor_mode tool decision invariant
    prompt_commitment output_commitment arguments_commitment""".split()
FLAGS = """resent migrated sovereignty_drift detection_degraded capitulated lost_thread slow_drip intervention
    refused would_refuse""".split()
NUMBERS = """turn timestamp cusum prompt_threat_signal confidence severity cusum_next m_before m_after
    governor_effort sigma_viol delta_V lyapunov_V stability_ratio z_shift""".split()
TRIPLES = "x z carry pressure raw_state state z_next carry_next".split()
OPTIONAL = {"cusum_slow": 0.0, "cusum_slow_next": 0.0, "m_floor": 0.0, "repeated": False, "unassessed": False, "setup": "", "trace_id": "", "rule": "",
            "effect": "", "high_risk": False, "standalone": False, "provenance": "", "flagged": ""}
SCORES = replay.CLASSES + ["injection"]
PART, RAN = {"part": str, "why": str, "bytes": int}, {"name": str, "outcome": str, "why": str}
SEEN = {"part": str, "detector": str, "bytes": int}
COVERAGE = {"detectors": RAN, "inspected": SEEN, "redacted": PART, "skipped": PART, "unknown": PART}
MEASURED = {"score": float, "millis": int}
OUTCOMES = "answered refused provider_failed client_gone aborted failed".split()


def is_a(kind, v):
    if kind is int:
        return type(v) is float and v.is_integer() and abs(v) <= 2.0**53
    if kind is list:
        return type(v) is list and len(v) == 3 and all(type(n) is float for n in v)
    return type(v) is kind


def check_types(r):
    kinds = {**dict.fromkeys(TEXTS, str), **dict.fromkeys(FLAGS, bool), **dict.fromkeys(NUMBERS, float),
             **dict.fromkeys(TRIPLES, list), "turn": int, "timestamp": int}
    for name, empty in OPTIONAL.items():
        need("form", r.get(name) != empty, f"{name} is empty and not left out")
        r.setdefault(name, empty)
        kinds[name] = type(empty)
    for name, kind in kinds.items():
        need("form", name in r and is_a(kind, r[name]), f"{name} is missing or of another type")
    others = r.keys() - kinds.keys()
    need("form", others == {"scores", "reasons", "standing", "coverage"}, f"other members: {sorted(others)}")
    need("form", isinstance(r["scores"], dict) and sorted(r["scores"]) == sorted(SCORES)
         and all(is_a(float, s) for s in r["scores"].values()), "scores")
    for name in "reasons", "standing":
        need("form", isinstance(r[name], list) and all(type(w) is str for w in r[name]), name)
    check_coverage(r["coverage"])


def check_coverage(c):
    lists = {"redacted": [], **c} if isinstance(c, dict) else {}
    need("form", lists.keys() == COVERAGE.keys() | {"bytes_inspected", "bytes_forwarded"} and c.get("redacted") != []
         and is_a(int, c["bytes_inspected"]) and is_a(int, c["bytes_forwarded"]), "coverage")
    for name, kinds in COVERAGE.items():
        need("form", isinstance(lists[name], list) and all(
            is_entry(e, kinds, MEASURED if name == "detectors" else {}) for e in lists[name]), f"coverage.{name}")


def is_entry(e, kinds, optional):
    """An entry of a list has all of its members, and some that are left out when they are 0."""
    kinds = kinds | {m: k for m, k in optional.items() if isinstance(e, dict) and e.get(m, 0) != 0}
    return (isinstance(e, dict) and e.keys() == kinds.keys() and all(is_a(k, e[m]) for m, k in kinds.items())
            and 0 <= e.get("score", 0) <= 1 and e.get("millis", 0) >= 0)


def read_record(record):
    """Reads a record, and gives it the optional members that it has not."""
    r = parse(record)
    need("form", isinstance(r, dict), "it is no receipt")
    check_types(r)
    return r


def check_form(r):
    for holds, what in (
        (replay.in_range(r), "an input is out of its range"),
        (r["outcome"] in OUTCOMES, "outcome"),
        (r["turn"] >= 1 and r["timestamp"] > 0, "turn or timestamp"),
        (not r["refused"] or r["outcome"] != "answered" and r["mode"] == "enforce", "refused, and answered or observed"),
        (r["trace_id"] == "" or re.fullmatch("[0-9a-f]{32}", r["trace_id"]) and r["trace_id"] != 32 * "0", "trace_id"),
        (r["prev"] or not r["migrated"], "the first of its session is migrated"),
        (not r["unassessed"] or not any(r["scores"].values()) and not r["prompt_threat_signal"] and not r["sovereignty_drift"]
         and not r["repeated"], "nobody read it, and it has evidence"),
        (not replay.foreign(r), "members of text and of tool calls"),
        (not r["tool"] or not r["prompt_commitment"] and not r["output_commitment"], "a tool call has no prompt and no output"),
        (not r["tool"] or r["decision"] == ("blocked" if r["refused"] else "approved"), "decision and refused differ"),
    ):
        need("form", holds, what)


# §16 The chain.

class Chain:
    def __init__(self, partial):
        self.partial, self.known = partial, {}

    def add(self, p, r, link):
        """Adds a receipt, and checks that it may stand there. One without a link, whose id is wrong, is only added."""
        twice = r["id"] in self.known
        self.known.setdefault(r["id"], {"link": link, "session": r["session_id"], "resent": r["resent"], "followers": [],
                                        "policy": r["policy"], "setup": r["setup"], "left": [r[m] for m in replay.LEFT]})
        if link:
            need("chain", not twice, "it occurs twice")
            self.follow(p, r, self.known.get(r["prev"][:36]))

    def follow(self, p, r, before):
        start = [r[m] for m in replay.SESSION]
        if r["prev"] == "":
            need("chain", start == replay.FIRST, "it is the first of its session, and does not start as one")
            return
        if before is None:
            need("chain", self.partial, "its predecessor does not stand before it")
            return
        link, left = before["link"], before["left"]
        older = not before["setup"] and r["prev"] == r["prev"][:36]
        need("chain", not link or r["prev"] == link or older, "its predecessor is another")
        before["followers"].append(r["resent"])
        need("chain", len(before["followers"]) == 1 or before["resent"] and all(before["followers"]),
             "another receipt follows the same one")
        need("chain", r["session_id"] == before["session"], "its predecessor is of another session")
        moved = before["policy"] != r["policy"]
        need("chain", r["migrated"] == moved and start == (replay.migrate(p, left) if moved else left),
             "it does not start from what its predecessor left")


# §17 Commitments and openings.

def opening(secret, nonce, info):
    key = hmac.digest(nonce.encode(), secret, "sha256")  # RFC 5869: extract, then expand to one block
    return hmac.digest(key, info.encode() + b"\x01", "sha256")


def commitment(key, text):
    return hmac.digest(key, text.encode(), "sha256").hex() if text else ""


def check_texts(r, t):
    for name in "prompt", "output", "arguments":
        if name in t:
            key = t["openings"].get(name, "")
            need("commitment", not t[name] or re.fullmatch("[0-9a-f]{64}", key), f"the text of {name} has no opening")
            need("commitment", commitment(bytes.fromhex(key), t[name]) == r[name + "_commitment"], f"the text of {name} is another")


# §20 The log and its head.

class Log:
    def __init__(self, partial):
        self.partial, self.seq, self.size, self.last, self.linked = partial, 0, 0, "", False
        self.peaks = []  # (leaves, hash) of whole subtrees, the largest first

    def place(self, seq, prev):
        """Checks the place of the record that is added next; seq is 0 where there is no log."""
        here, last = self.seq + 1, self.last
        if self.partial and self.size == 0:
            here, last = seq, prev
        before, self.seq, self.linked = self.seq, seq, self.linked or prev != ""
        need("log", seq == here or seq == before == 0, f"its number is {seq}, and {here} comes next")
        need("log", prev == (last if self.linked else ""), "log_prev is not the hash of the record before it")

    def add(self, record):
        self.size, self.last = self.size + 1, sha256(record).hexdigest()
        self.peaks.append((1, sha256(b"\x00", record).digest()))
        while len(self.peaks) > 1 and self.peaks[-1][0] == self.peaks[-2][0]:
            (n, right), (_, left) = self.peaks.pop(), self.peaks.pop()
            self.peaks.append((2 * n, sha256(b"\x01", left, right).digest()))

    def root(self):
        if not self.peaks:
            return sha256().digest()
        root = self.peaks[-1][1]
        for _, left in reversed(self.peaks[:-1]):
            root = sha256(b"\x01", left, root).digest()
        return root


def open_head(note):
    """The size and the root of a head, signed or not. A signature is for others to check."""
    signed = re.match(r"[^\n]+\n([0-9]{1,15})\n([0-9A-Za-z+/]{43}=)\n", note)
    bare = re.match(r"size ([0-9]{1,15})\nroot ([0-9A-Za-z+/]{43}=)\n", note)
    if not (bare or signed):
        sys.exit("--since: it is no head as section 20 of docs/receipts.md defines it")
    size, root = (bare or signed).groups()
    return int(size), base64.b64decode(root)


# §21 Exports.

ENTRY = re.compile(rb'\{"seq":([1-9][0-9]{0,15}),"log_prev":"([0-9a-f]{64})?","receipt":(\{.*\}|null)\}', re.DOTALL)
DOCUMENT = re.compile(rb'\{"(policy|setup)":(\{.*\})\}', re.DOTALL)


class Verifier:
    def __init__(self, partial=False, since=None, texts=None):
        self.chain, self.log, self.since, self.texts = Chain(partial), Log(partial), since, texts or {}
        self.policies, self.setups, self.faults, self.unknown_setups = {}, set(), [], set()

    def check(self, where, function, *arguments):
        try:
            return function(*arguments)
        except Fault as e:
            self.faults.append(f"{where}: {e}")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
            self.faults.append(f"{where}: form: {type(e).__name__} {e}")

    def line(self, where, line):
        if document := DOCUMENT.fullmatch(line):
            self.document(where, *document.groups())
            return
        entry = ENTRY.fullmatch(line)
        seq, prev, record = (int(entry[1]), (entry[2] or b"").decode(), entry[3]) if entry else (0, "", line)
        self.check(where, self.log.place, seq, prev)
        self.log.add(record)
        if self.since and self.log.size == self.since[0]:
            self.check(where, need, "head", self.log.root() == self.since[1], "the log that was signed is another")
        r = self.check(where, read_record, record)
        if r is not None:
            self.receipt(where + " " + r["id"], record, r)

    def document(self, where, kind, text):
        digest = sha256(text).hexdigest()
        if kind == b"setup":
            self.setups.add(digest)
        elif policy := self.check(where, lambda: replay.complete_policy(parse(text))):
            self.policies[digest] = policy

    def receipt(self, where, record, r):
        p, link = self.policies.get(r["policy"]), link_of(record, r)
        whole = r["id"] == link[:36]
        self.check(where, need, "form", whole, "the id is not the hash of the record")
        if whole:
            self.check(where, check_form, r)
            self.check(where, need, "replay", p, "its policy is not known")
            self.faults += [f"{where}: replay: {wrong}" for wrong in p and self.check(where, replay.differences, p, r) or ()]
        if p:
            self.check(where, self.chain.add, p, r, whole and link)
        if r["setup"] and r["setup"] not in self.setups:
            self.unknown_setups.add(r["setup"])
        if r["id"] in self.texts:
            self.check(where, check_texts, r, self.texts.pop(r["id"]))

    def end(self):
        if self.since and self.log.size < self.since[0]:
            self.faults.append(f"end: head: the log that was signed has {self.since[0]} receipts")
        self.faults += [f"end: commitment: there is no receipt {name}" for name in self.texts]


def main():
    a = argparse.ArgumentParser(description="Verifies receipts of Lex as docs/receipts.md specifies.")
    a.add_argument("files", nargs="*", help='exports ("-" is standard input)')
    a.add_argument("--partial", action="store_true", help="earlier receipts may be missing")
    a.add_argument("--since", help="a head that was kept: what is here must extend it")
    a.add_argument("--texts", help='JSON lines {"id", "openings", "prompt", "output", "arguments"}')
    a.add_argument("--vectors", help="check this program against the test vectors in a folder")
    a = a.parse_args()
    if a.vectors:
        import vectors
        return vectors.check(a.vectors)
    since = open_head(open(a.since, encoding="utf-8").read()) if a.since else None
    texts = {t["id"]: t for t in map(json.loads, open(a.texts, encoding="utf-8"))} if a.texts else None
    v = Verifier(a.partial, since, texts)
    for name in a.files:
        with sys.stdin.buffer if name == "-" else open(name, "rb") as lines:
            for n, line in enumerate(lines, 1):
                if line := line.removesuffix(b"\n").removesuffix(b"\r"):
                    v.line(f"{name}:{n}", line)
    v.end()
    for fault in v.faults:
        print(fault)
    print(f"{v.log.size} receipts, {len(v.faults)} faults, {len(v.unknown_setups)} setups that are not here")
    print(f"size {v.log.size}\nroot {base64.b64encode(v.log.root()).decode()}\nlast {v.log.last}")
    return 1 if v.faults else 0


if __name__ == "__main__":
    sys.exit(main())

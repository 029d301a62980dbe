#!/usr/bin/env python3
"""Verifies receipts of Lex as docs/receipts.md specifies, with nothing but Python's
standard library. The numbers after § are the sections of that page."""
import argparse, base64, decimal, hashlib, hmac, json, math, os, re, sys


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
        return "{" + ",".join(canonical(k) + ":" + canonical(v[k]) for k in sorted(v, key=lambda k: k.encode("utf-16-be"))) + "}"
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
OPTIONAL = {"repeated": False, "setup": "", "rule": "", "effect": "", "high_risk": False, "standalone": False,
            "provenance": "", "flagged": ""}
REASONS = """operator_policy semantic_classifier contrastive_threat slow_drip sovereignty_drift
    constitutional_floor capitulation""".split()
SCORES = "identity coercion exploitative harm_request sycophancy injection".split()
CLASSES = SCORES[:5]
PART, RAN = {"part": str, "why": str, "bytes": int}, {"name": str, "outcome": str, "why": str}
COVERAGE = {"detectors": RAN, "inspected": {"part": str, "detector": str, "bytes": int}, "redacted": PART, "skipped": PART, "unknown": PART}
WORDS = {
    "mode": ["enforce", "observe"],
    "outcome": ["answered", "refused", "provider_failed", "client_gone", "aborted", "failed"],
    "category": ["", "identity_adoption", "constraint_disavowal", "sycophantic_capitulation", "harmful_compliance", "none"],
    "effect": ["", "read", "write", "send", "other"],
    "provenance": ["", "user", "model", "untrusted", "instruction"],
}


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
        need("form", isinstance(r[name], list) and all(w in REASONS for w in r[name]), name)
    check_coverage(r["coverage"])


def check_coverage(c):
    lists = {"redacted": [], **c} if isinstance(c, dict) else {}
    need("form", lists.keys() == COVERAGE.keys() | {"bytes_inspected", "bytes_forwarded"} and c.get("redacted") != []
         and is_a(int, c["bytes_inspected"]) and is_a(int, c["bytes_forwarded"]), "coverage")
    for name, kinds in COVERAGE.items():
        need("form", isinstance(lists[name], list) and all(
            isinstance(e, dict) and e.keys() == kinds.keys() and all(is_a(k, e[m]) for m, k in kinds.items())
            for e in lists[name]), f"coverage.{name}")


def open_record(record):
    """Reads a record, and gives it the optional members that it has not."""
    r = parse(record)
    need("form", isinstance(r, dict) and isinstance(r.get("id"), str) and isinstance(r.get("tool"), str), "it is no receipt")
    link = link_of(record, r)
    need("form", r["id"] == link[:36], "the id is not the hash of the record")
    check_types(r)
    return r, link


def check_form(r):
    for name, words in WORDS.items():
        need("form", r[name] in words, f"{name} is {r[name]!r}")
    unit = lambda v: 0 <= v <= 1
    need("form", all(map(unit, r["scores"].values())) and unit(r["confidence"]) and abs(r["prompt_threat_signal"]) <= 2,
         "evidence out of its range")
    for name in "x", "z":
        need("form", min(r[name]) >= 1e-300 and abs(total(r[name]) - 1) <= 1e-9, f"{name} is not a point of the simplex")
    need("form", min(r["cusum"], *r["carry"]) >= 0, "cusum or carry is negative")
    need("form", r["turn"] >= 1 and r["timestamp"] > 0, "turn or timestamp")
    need("form", not (r["refused"] and r["outcome"] == "answered"), "refused, and answered")
    need("form", r["prev"] or not r["migrated"], "the first of its session is migrated")
    if r["tool"]:
        wrong = [m for m in ("prompt_threat_signal sovereignty_drift detection_degraded denied_by standing repeated capitulated "
                             "category confidence lost_thread prompt_commitment output_commitment").split() if r[m]]
        need("form", any(r["scores"].values()) <= (r["invariant"] not in ("", "session_risk")), "scores without an invariant")
    else:
        wrong = [m for m in "decision invariant rule effect high_risk standalone provenance flagged arguments_commitment".split() if r[m]]
    need("form", not wrong, f"it cannot have {wrong}")


# §5 The policy.

def open_policy(text):
    p = parse(text)
    p["weight_floor"] = (1 - p["kappa"]) / 3
    between = lambda low, names, high: all(low < p[n] < high for n in names.split())
    units = [p["carry_capitulated"], p["carry_lost_thread"], *(v for c in CLASSES for v in p["pressure"][c])]
    need("replay", 0.001 <= p["floor"] < p["tau"] < p["recovery"] < p["optimal"] < 1 / 3
         and 0 < p["rho"] < 1 and 0 < p["eta"] <= 50 and 0 < p["beta"] <= 1 and 0 < p["clip"] <= 4
         and p["kappa"] >= 0 and p["weight_floor"] > p["tau"] and all(0 <= u <= 1 for u in units)
         and between(0, "watch_at threat_at cusum_k", 1) and between(p["watch_at"], "multi_at severe_at refuse_at", 1)
         and p["watch_at"] < p["refuse_at_degraded"] <= p["refuse_at"]
         and 0 < p["cusum_h"] <= 10 and 0 < p["cusum_relief"] <= 1, "the policy is not valid")
    return p


# §6 Arithmetic.

HEX = float.fromhex
LN2_HI, LN2_LO, LOG2E, SQRT_HALF = map(HEX, ("0x1.62e42feep-1", "0x1.a39ef35793c76p-33", "0x1.71547652b82fep+0", "0x1.6a09e667f3bcdp-1"))
P = [HEX(c) for c in ("0x1.555555555553ep-3 -0x1.6c16c16bebd93p-9 0x1.1566aaf25de2cp-14 "
                      "-0x1.bbd41c5d26bf1p-20 0x1.6376972bea4dp-25").split()]
L = [HEX(c) for c in ("0x1.5555555555593p-1 0x1.999999997fa04p-2 0x1.2492494229359p-2 0x1.c71c51d8e78afp-3 "
                      "0x1.7466496cb03dep-3 0x1.39a09d078c69fp-3 0x1.2f112df3e5244p-3").split()]
NONE = [0.0, 0.0, 0.0]


def horner(t, c):
    s = c[-1]
    for ci in reversed(c[:-1]):
        s = ci + t * s
    return s


def exp(x):
    k = math.trunc(LOG2E * x + 1024.5) - 1024
    hi = x - k * LN2_HI
    lo = k * LN2_LO
    r = hi - lo
    t = r * r
    c = r - t * horner(t, P)
    y = 1 - ((lo - (r * c) / (2 - c)) - hi)
    return math.ldexp(y, k)


def ln(x):
    m, k = math.frexp(x)
    if m < SQRT_HALF:
        m, k = m + m, k - 1
    f = m - 1
    s = f / (2 + f)
    q = s * s
    big_r = q * horner(q, L)
    h = (0.5 * f) * f
    return k * LN2_HI - ((h - (s * (h + big_r) + k * LN2_LO)) - f)


def total(v):
    return (v[0] + v[1]) + v[2]


def lns(v):
    return [ln(c) for c in v]


def divergence(z, a, b):
    return max(0.0, ((0 + z[0] * (a[0] - b[0])) + z[1] * (a[1] - b[1])) + z[2] * (a[2] - b[2]))


def distance(a, b):
    d = [ai - bi for ai, bi in zip(a, b)]
    return math.sqrt(((0 + d[0] * d[0]) + d[1] * d[1]) + d[2] * d[2])


def softmax(v):
    top = max(v)
    w = [vi - top for vi in v]
    e = [exp(wi) for wi in w]
    n = total(e)
    return [ei / n for ei in e], [wi - ln(n) for wi in w]


def project(p, f):
    lo, mid, hi = sorted(range(3), key=lambda i: p[i])
    if p[lo] >= f:
        return p
    scale = (1 - f) / (p[mid] + p[hi])
    y = [f, f, f]
    y[mid], y[hi] = scale * p[mid], scale * p[hi]
    if y[mid] < f:
        y[mid], y[hi] = f, 1 - 2 * f
    return y


# §7 The session: x, z, cusum, carry.

FIRST = [[1 / 3] * 3, [1 / 3] * 3, 0.0, NONE]


def migrate(p, session):
    x, z, cusum, carry = session
    return [project(x, p["tau"]), project(z, p["weight_floor"]), p["cusum_h"] / 2 if cusum >= p["cusum_h"] else cusum, carry]


# §8 Severity, type and the slow drip.

def class_scores(r):
    s = r["scores"]
    return [max(s["identity"], s["injection"])] + [s[c] for c in CLASSES[1:]]


def refuse_at(p, r):
    return p["refuse_at_degraded"] if r["detection_degraded"] else p["refuse_at"]


def classify(p, r):
    scores = class_scores(r)
    top = max(scores)
    a, b = sorted(scores, reverse=True)[:2]
    support = max(0.0, b - p["watch_at"])
    severity = a if support == 0 else 1 - (1 - a) * (1 - support)
    if sum(s >= p["multi_at"] for s in scores) >= 2:
        kind = "multi"
    else:
        kind = CLASSES[scores.index(top)] if top >= p["watch_at"] else "none"
    return severity, kind, top


def chart(p, cusum, severity):
    g = max(0.0, cusum + max(severity - p["cusum_k"], -p["cusum_relief"]))
    return (p["cusum_h"] / 2, True) if g >= p["cusum_h"] else (g, False)


# §9 Pressure.

def pressure(p, r, carry):
    attack = [0.0, 0.0, 0.0]
    for name, s in zip(CLASSES, class_scores(r)):
        if s > p["watch_at"]:
            g = (s - p["watch_at"]) / (1 - p["watch_at"])
            attack = [max(a, g * row) for a, row in zip(attack, p["pressure"][name])]
    v = [a + c for a, c in zip(attack, carry)]
    return [min(vi - min(v), p["clip"]) for vi in v]


# §10 The step.

def step(p, x, z, push, rho):
    ln_x, ln_z = lns(x), lns(z)
    drift = lambda push: softmax([((1 - rho) * a + rho * b) - p["eta"] * c for a, b, c in zip(ln_x, ln_z, push)])
    rest, ln_rest = drift(NONE)
    rest = [max(ri, min(xi, zi)) for ri, xi, zi in zip(rest, x, z)]
    raw, ln_raw = (rest, ln_rest) if push == NONE else drift(push)
    state = project(raw, p["tau"])
    short = [max(0.0, p["tau"] - ri) for ri in raw]

    after = divergence(z, ln_z, lns(state))
    d = after - divergence(z, ln_z, ln_x)
    delta = d if abs(d) >= 1e-12 else 0.0
    base = 0.001
    if raw != rest:
        base = 0.001 + max(0.0, divergence(z, ln_z, ln_raw) - divergence(z, ln_z, ln_rest))

    force = total(push)
    gain = p["kappa"] * min(1.0, force)
    w = [1 / 3 if force == 0 else (1 - gain) / 3 + gain * (pi / force) for pi in push]
    n = [(1 - p["beta"]) * zi + p["beta"] * wi for zi, wi in zip(z, w)]
    z_next = [max(ni / total(n), p["weight_floor"]) for ni in n]
    return {"pressure": push, "raw_state": raw, "state": state, "m_before": min(raw), "m_after": min(state),
            "intervention": min(raw) < p["tau"], "governor_effort": distance(state, raw), "sigma_viol": total(short),
            "delta_V": delta, "lyapunov_V": after, "stability_ratio": (base - delta) / base, "z_next": z_next,
            "z_shift": divergence(z_next, lns(z_next), lns(state)) - after}


def no_step(x, z):  # §13
    return {"pressure": NONE, "raw_state": x, "state": x, "m_before": min(x), "m_after": min(x), "intervention": False,
            "governor_effort": 0.0, "sigma_viol": 0.0, "delta_V": 0.0, "lyapunov_V": divergence(z, lns(z), lns(x)),
            "stability_ratio": 1.0, "z_next": z, "z_shift": 0.0}


# §11 The decision, §12 the answer, §13 repeated turns.

def text_turn(p, r):
    severity, kind, top = classify(p, r)
    cusum, alarm = r["cusum"], False
    if r["repeated"]:
        out = no_step(r["x"], r["z"])
    else:
        out = step(p, r["x"], r["z"], pressure(p, r, r["carry"]), p["rho"])
        cusum, alarm = chart(p, cusum, severity)
    loud = severity >= refuse_at(p, r)
    suspected = top >= p["watch_at"]
    holds = {
        "operator_policy": r["denied_by"] != "",
        "semantic_classifier": loud,
        "contrastive_threat": r["prompt_threat_signal"] > p["threat_at"] and suspected,
        "slow_drip": alarm,
        "sovereignty_drift": r["sovereignty_drift"] and suspected,
        "constitutional_floor": out["m_before"] < p["floor"] and severity >= p["severe_at"],
        "capitulation": r["capitulated"],
    }
    carry = [0.0, 0.0, 0.0]
    if r["lost_thread"]:
        carry[0] = p["carry_lost_thread"]
    if r["capitulated"]:
        carry[1 if r["category"] == "harmful_compliance" else 2] = p["carry_capitulated"] * r["confidence"]
    out.update(severity=severity, attack_type="slow_drip" if alarm and top < refuse_at(p, r) else kind,
               slow_drip=alarm, cusum_next=cusum, carry_next=carry, decision="",
               reasons=[w for w in REASONS if holds[w] or w in r["standing"]],
               pre_eval_label="THREAT" if loud else "WATCH" if severity >= p["watch_at"] else "CLEAR")
    return out, out["reasons"] != []


# §14 Tool calls.

def state_denies(p, r):
    m = min(r["x"])
    if r["effect"] == "":
        return False
    if r["high_risk"] and m < p["optimal"]:
        return True
    if m <= p["tau"]:
        return r["effect"] != "read"
    return m < p["recovery"] and r["effect"] in ("write", "send")


def tool_call(p, r):
    invariant = "" if r["invariant"] == "session_risk" else r["invariant"]
    if invariant == "" and r["rule"] == "" and state_denies(p, r):
        invariant = "session_risk"
    denied = invariant != "" or r["rule"] != ""
    severity, kind, alarm, cusum = 0.0, "none", False, r["cusum"]
    if any(r["scores"].values()):
        severity, kind, top = classify(p, r)
        cusum, alarm = chart(p, cusum, severity)
        kind = "slow_drip" if alarm and top < p["refuse_at"] else kind
        out = step(p, r["x"], r["z"], pressure(p, r, NONE), 0.0)
    elif r["standalone"] and not denied:
        out = step(p, r["x"], r["z"], NONE, p["rho"])
    else:
        out = no_step(r["x"], r["z"])
    out.update(severity=severity, attack_type=kind, slow_drip=alarm, cusum_next=cusum, carry_next=r["carry"], reasons=[],
               invariant=invariant, decision="blocked" if denied and r["mode"] == "enforce" else "approved",
               pre_eval_label="THREAT" if invariant else "CLEAR")
    return out, denied


# §15 Replay.

def outcome(p, r):
    """All that follows from the inputs."""
    out, ground = (tool_call if r["tool"] else text_turn)(p, r)
    refused = out["refused"] = ground and r["mode"] == "enforce"
    out["would_refuse"] = ground and not refused
    m = out["m_after"]
    out["health_band"] = ("CRITICAL" if refused else "OPTIMAL" if m >= p["optimal"] else
                          "ALERT" if m >= p["recovery"] else "STRESSED")
    out["governor_mode"] = ("observe" if r["mode"] == "observe" else "refuse" if refused else
                            "correct" if out["intervention"] else "pass")
    return out


def replay(p, r):
    need("replay", min(r["x"]) >= p["tau"] and min(r["z"]) >= p["weight_floor"] and r["cusum"] < p["cusum_h"],
         "it starts where no session gets to")
    for name, value in outcome(p, r).items():
        need("replay", r[name] == value, f"{name} is {r[name]}, and follows as {value}")


# §16 The chain.

class Chain:
    def __init__(self, partial):
        self.partial, self.known = partial, {}

    def add(self, p, r, link):
        twice = r["id"] in self.known
        place = self.known.setdefault(r["id"], {"link": link, "session": r["session_id"], "resent": r["resent"], "followers": [],
            "policy": r["policy"], "left": [r["state"], r["z_next"], r["cusum_next"], r["carry_next"]]})
        need("chain", not twice, "it occurs twice")
        self.follow(p, r, self.known.get(r["prev"][:36]))

    def follow(self, p, r, before):
        start = [r["x"], r["z"], r["cusum"], r["carry"]]
        if r["prev"] == "":
            need("chain", start == FIRST, "it is the first of its session, and does not start as one")
            return
        if before is None:
            need("chain", self.partial, "its predecessor does not stand before it")
            return
        need("chain", r["prev"] in (before["link"], before["link"][:36]), "its predecessor is another")
        before["followers"].append(r["resent"])
        need("chain", len(before["followers"]) == 1 or before["resent"] and all(before["followers"]),
             "another receipt follows the same one")
        need("chain", r["session_id"] == before["session"], "its predecessor is of another session")
        moved = before["policy"] != r["policy"]
        need("chain", r["migrated"] == moved and start == (migrate(p, before["left"]) if moved else before["left"]),
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
            need("commitment", not t[name] or re.fullmatch("[0-9a-f]{64}", key), f"the {name} has no opening")
            need("commitment", commitment(bytes.fromhex(key), t[name]) == r[name + "_commitment"], f"the {name} is another")


# §20 The log and its head.

class Log:
    def __init__(self):
        self.size, self.last, self.peaks = 0, "", []  # the peaks: (leaves, hash) of whole subtrees, largest first

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
    """The size and the root of a checkpoint; whoever keeps it trusts it."""
    lines = note.split("\n")
    return int(lines[1]), base64.b64decode(lines[2])


# §21 Exports.

ENTRY = re.compile(rb'\{"seq":([1-9][0-9]*),"log_prev":"([0-9a-f]{64})?","receipt":(\{.*\})\}', re.DOTALL)
DOCUMENT = re.compile(rb'\{"(policy|setup)":(\{.*\})\}', re.DOTALL)


class Verifier:
    def __init__(self, partial=False, since=None, texts=None):
        self.chain, self.log, self.partial, self.since, self.texts = Chain(partial), Log(), partial, since, texts or {}
        self.policies, self.setups, self.faults, self.receipts, self.first_seq = {}, set(), [], 0, None

    def check(self, where, function, *arguments):
        try:
            return function(*arguments)
        except (Fault, KeyError, TypeError, OverflowError, ValueError) as e:
            self.faults.append(f"{where}: {e}" if isinstance(e, Fault) else f"{where}: form: {type(e).__name__} {e}")

    def line(self, where, line):
        if document := DOCUMENT.fullmatch(line):
            kind, text = document.group(1), document.group(2)
            if kind == b"setup":
                self.setups.add(sha256(text).hexdigest())
            elif (policy := self.check(where, open_policy, text)) is not None:
                self.policies[sha256(text).hexdigest()] = policy
            return
        entry = ENTRY.fullmatch(line)
        record = entry.group(3) if entry else line
        if entry:
            self.check(where, self.place, int(entry.group(1)), (entry.group(2) or b"").decode())
        self.receipts += 1
        self.log.add(record)
        if self.since and self.log.size == self.since[0]:
            self.check(where, self.extends)
        opened = self.check(where, open_record, record)
        if opened is None:
            return
        r, link = opened
        where += " " + r["id"]
        p = self.policies.get(r["policy"])
        if p is None:
            self.check(where, need, "replay", False, "its policy is not known")
            return
        faults = len(self.faults)
        self.check(where, check_form, r)
        if len(self.faults) == faults:
            self.check(where, replay, p, r)
        self.check(where, self.chain.add, p, r, link)
        if r["id"] in self.texts:
            self.check(where, check_texts, r, self.texts.pop(r["id"]))

    def place(self, seq, prev):
        """§20: the entry stands in the log."""
        expected, last = (self.next_seq, self.log.last) if self.first_seq else (seq if self.partial else 1, prev if self.partial else "")
        self.first_seq = self.first_seq or seq
        self.next_seq = seq + 1
        need("log", seq == expected, f"its number is {seq}, and {expected} comes next")
        need("log", prev == last, "log_prev is not the hash of the record before it")

    def extends(self):
        need("head", self.log.root() == self.since[1], "the log has another history than the head that was kept")

    def end(self):
        if self.since and self.log.size < self.since[0]:
            self.faults.append(f"end: head: {self.log.size} receipts, and the head that was kept has {self.since[0]}")
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
                if line := line.removesuffix(b"\n"):
                    v.line(f"{name}:{n}", line)
    v.end()
    for fault in v.faults:
        print(fault)
    print(f"{v.receipts} receipts, {len(v.faults)} faults")
    print(f"size {v.log.size}\nroot {base64.b64encode(v.log.root()).decode()}\nlast {v.log.last}")
    return 1 if v.faults else 0


if __name__ == "__main__":
    sys.exit(main())

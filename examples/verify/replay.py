"""The step of the kernel and what is decided on it, as docs/receipts.md specifies them in the
sections after §: everything in a receipt that follows from something else in it."""
import math

REASONS = """operator_policy semantic_classifier contrastive_threat slow_drip sovereignty_drift
    constitutional_floor capitulation""".split()
CLASSES = "identity coercion exploitative harm_request sycophancy".split()
NONE = [0.0, 0.0, 0.0]


# §4 Form: the ranges of what a step starts from.

WORDS = {
    "mode": ["enforce", "observe"],
    "category": ["", "identity_adoption", "constraint_disavowal", "sycophantic_capitulation", "harmful_compliance", "none"],
    "effect": ["", "read", "write", "send", "other"],
    "provenance": ["", "user", "model", "untrusted", "instruction"],
}


def in_range(r):
    return (all(r[name] in words for name, words in WORDS.items()) and all(w in REASONS for w in r["standing"])
            and all(0 <= v <= 1 for v in [*r["scores"].values(), r["confidence"]]) and abs(r["prompt_threat_signal"]) <= 2
            and all(min(r[name]) >= 1e-300 and abs(total(r[name]) - 1) <= 1e-9 for name in "xz")
            and min(r["cusum"], r["cusum_slow"], *r["carry"]) >= 0)


# §5 The policy.

MEMBERS = """floor tau recovery optimal rho eta clip beta kappa pressure carry_capitulated carry_lost_thread watch_at
    multi_at severe_at refuse_at refuse_at_degraded threat_at cusum_k cusum_h cusum_relief""".split()
OPTIONAL = "revision threat_severity cusum_slow_k cusum_slow_h cusum_slow_relief".split()


def complete_policy(p):
    """Checks a policy, and gives it the optional members that it has not."""
    rows = [p["pressure"][c] for c in CLASSES]
    numbers = [v for name, v in p.items() if name != "pressure"] + sum(rows, [])
    if (p.keys() - OPTIONAL != set(MEMBERS) or any(p.get(name) == 0 for name in OPTIONAL) or len(p["pressure"]) != 5
            or any(len(row) != 3 for row in rows) or any(type(v) is not float for v in numbers)):
        raise ValueError("it is not a policy")
    p = {**dict.fromkeys(OPTIONAL, 0.0), **p, "weight_floor": (1 - p["kappa"]) / 3}
    units = [p["carry_capitulated"], p["carry_lost_thread"], *sum(rows, [])]
    slow = [p["cusum_slow_k"], p["cusum_slow_h"], p["cusum_slow_relief"]]
    valid = (0.001 <= p["floor"] < p["tau"] < p["recovery"] < p["optimal"] < 1 / 3
            and 0 < p["rho"] < 1 and 0 < p["eta"] <= 50 and 0 < p["beta"] <= 1 and 0 < p["clip"] <= 4
            and p["kappa"] >= 0 and p["weight_floor"] > p["tau"] and all(0 <= u <= 1 for u in units)
            and all(0 < p[name] < 1 for name in ("watch_at", "threat_at", "cusum_k")) and 0 <= p["threat_severity"] < 1
            and all(p["watch_at"] < p[name] < 1 for name in ("multi_at", "severe_at", "refuse_at"))
            and p["watch_at"] < p["refuse_at_degraded"] <= p["refuse_at"]
            and 0 < p["cusum_h"] <= 10 and 0 < p["cusum_relief"] <= 1 and p["revision"] in (0, 1)
            and (slow == NONE or 0 < slow[0] < 1 and 0 < slow[1] <= 10 and 0 < slow[2] <= 1))
    if not valid:
        raise ValueError("the policy is not valid")
    return p


def refuse_at(p, r):
    return p["refuse_at_degraded"] if r["detection_degraded"] else p["refuse_at"]


# §6 Arithmetic.

LN2_HI, LN2_LO, LOG2E, SQRT_HALF = map(float.fromhex, (
    "0x1.62e42feep-1", "0x1.a39ef35793c76p-33", "0x1.71547652b82fep+0", "0x1.6a09e667f3bcdp-1"))
P = list(map(float.fromhex, """0x1.555555555553ep-3 -0x1.6c16c16bebd93p-9 0x1.1566aaf25de2cp-14
    -0x1.bbd41c5d26bf1p-20 0x1.6376972bea4dp-25""".split()))
L = list(map(float.fromhex, """0x1.5555555555593p-1 0x1.999999997fa04p-2 0x1.2492494229359p-2 0x1.c71c51d8e78afp-3
    0x1.7466496cb03dep-3 0x1.39a09d078c69fp-3 0x1.2f112df3e5244p-3""".split()))


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


# §7 The session: x, z, cusum, cusum_slow, carry.

SESSION = "x z cusum cusum_slow carry".split()
LEFT = "state z_next cusum_next cusum_slow_next carry_next".split()
FIRST = [[1 / 3] * 3, [1 / 3] * 3, 0.0, 0.0, NONE]


def migrate(p, session):
    x, z, cusum, slow, carry = session
    if p["revision"] == 0 and cusum >= p["cusum_h"]:
        cusum = p["cusum_h"] / 2
    return [project(x, p["tau"]), project(z, p["weight_floor"]), min(cusum, p["cusum_h"]), min(slow, p["cusum_slow_h"]), carry]


def reachable(p, r):
    return (min(r["x"]) >= p["tau"] and min(r["z"]) >= p["weight_floor"] and r["cusum_slow"] <= p["cusum_slow_h"]
            and (r["cusum"] <= p["cusum_h"] if p["revision"] else r["cusum"] < p["cusum_h"]))


# §8 Severity, type and the slow drip.

def class_scores(r):
    s = r["scores"]
    return [max(s["identity"], s["injection"])] + [s[c] for c in CLASSES[1:]]


def chart(p, name, g, severity):
    h = p[name + "_h"]
    following = min(h, max(0.0, g + max(severity - p[name + "_k"], -p[name + "_relief"])))
    return following, following >= h > 0


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
    out = still(r, severity, kind)
    if r["repeated"] or r["unassessed"]:
        return out
    cusum, fast_alarm = chart(p, "cusum", r["cusum"], severity)
    slow, slow_alarm = chart(p, "cusum_slow", r["cusum_slow"], severity)
    if fast_alarm and p["revision"] == 0:
        cusum = p["cusum_h"] / 2
    alarm = fast_alarm or slow_alarm
    if alarm and top < refuse_at(p, r):
        kind = "slow_drip"
    return out | {"attack_type": kind, "slow_drip": alarm, "cusum_next": cusum, "cusum_slow_next": slow}


def still(r, severity, kind):
    """The statistics stay as they are."""
    return {"severity": severity, "attack_type": kind, "slow_drip": False,
            "cusum_next": r["cusum"], "cusum_slow_next": r["cusum_slow"]}


# §9 Pressure.

def pressure(p, r, carry):
    attack = NONE
    for name, s in zip(CLASSES, class_scores(r)):
        if s > p["watch_at"]:
            g = (s - p["watch_at"]) / (1 - p["watch_at"])
            attack = [max(a, g * row) for a, row in zip(attack, p["pressure"][name])]
    v = [a + c for a, c in zip(attack, carry)]
    return [min(vi - min(v), p["clip"]) for vi in v]


# §10 The step.

def step(p, r, push, relax):
    x, z = r["x"], r["z"]
    ln_x, ln_z = lns(x), lns(z)
    drift = lambda push: softmax([((1 - relax) * a + relax * b) - p["eta"] * c for a, b, c in zip(ln_x, ln_z, push)])
    rest, ln_rest = drift(NONE)
    rest = [max(ri, min(xi, zi)) for ri, xi, zi in zip(rest, x, z)]
    raw, ln_raw = (rest, ln_rest) if push == NONE else drift(push)
    raw_state, state = list(raw), list(project(raw, p["tau"]))
    if relax == 0 and p["revision"] == 1:
        i = push.index(max(push))
        raw_state[i], state[i] = min(raw_state[i], x[i]), min(state[i], x[i])

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
    return {"pressure": push, "raw_state": raw_state, "state": state, "m_before": min(raw_state), "m_after": min(state),
            "intervention": min(raw_state) < p["tau"], "governor_effort": distance(state, raw_state),
            "sigma_viol": total([max(0.0, p["tau"] - ri) for ri in raw_state]), "m_floor": 0.0, "delta_V": delta,
            "lyapunov_V": after, "stability_ratio": (base - delta) / base, "z_next": z_next,
            "z_shift": divergence(z_next, lns(z_next), lns(state)) - after}


def floor_margin(p, x, push):
    i = push.index(max(push))
    f = [exp(-(p["eta"] * pn)) for pn in push]
    others = (f[i - 1] + f[i - 2]) / 2
    return 1 / (1 + ((1 - x[i]) * others) / (x[i] * f[i]))


def no_step(r):  # §13
    x, z = r["x"], r["z"]
    return {"pressure": NONE, "raw_state": x, "state": x, "m_before": min(x), "m_after": min(x), "intervention": False,
            "governor_effort": 0.0, "sigma_viol": 0.0, "m_floor": 0.0, "delta_V": 0.0,
            "lyapunov_V": divergence(z, lns(z), lns(x)), "stability_ratio": 1.0, "z_next": z, "z_shift": 0.0}


# §11 The decision, §12 the answer, §13 repeated turns.

def text_turn(p, r):
    out = classify(p, r)
    severity = out["severity"]
    severe = severity >= p["severe_at"]
    presses = severe and p["revision"] == 1
    if r["repeated"] or r["unassessed"]:
        out |= no_step(r)
    else:
        push = pressure(p, r, r["carry"])
        out |= step(p, r, push, 0.0 if presses else p["rho"])
        out["m_floor"] = floor_margin(p, r["x"], push) if presses else 0.0
    loud = severity >= refuse_at(p, r)
    suspected = max(class_scores(r)) >= p["watch_at"]
    holds = {
        "operator_policy": r["denied_by"] != "",
        "semantic_classifier": loud,
        "contrastive_threat": r["prompt_threat_signal"] > p["threat_at"] and suspected and severity >= p["threat_severity"],
        "slow_drip": out["slow_drip"],
        "sovereignty_drift": r["sovereignty_drift"] and suspected,
        "constitutional_floor": 0 < out["m_floor"] < p["floor"] if p["revision"] == 1 else out["m_before"] < p["floor"] and severe,
        "capitulation": r["capitulated"],
    }
    reasons = [w for w in REASONS if holds[w] or w in r["standing"]]
    left = list(NONE)
    if r["lost_thread"]:
        left[0] = p["carry_lost_thread"]
    if r["capitulated"]:
        left[1 if r["category"] == "harmful_compliance" else 2] = p["carry_capitulated"] * r["confidence"]
    prompt_refused = p["revision"] == 1 and (set(reasons) - {"capitulation"} or "capitulation" in r["standing"])
    if prompt_refused or r["unassessed"]:
        left = [max(li, ci) for li, ci in zip(left, r["carry"])]
    return out | {"reasons": reasons, "carry_next": left, "decision": "",
                  "pre_eval_label": "UNASSESSED" if r["unassessed"] else "THREAT" if loud else "WATCH" if severity >= p["watch_at"] else "CLEAR"}, reasons != []


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
    if any(r["scores"].values()):
        out = classify(p, r) | step(p, r, pressure(p, r, NONE), 0.0)
    elif r["standalone"] and not denied:
        out = still(r, 0.0, "none") | step(p, r, NONE, p["rho"])
    else:
        out = still(r, 0.0, "none") | no_step(r)
    return out | {"reasons": [], "carry_next": r["carry"], "invariant": invariant, "pre_eval_label": "THREAT" if invariant else "CLEAR",
                  "decision": "blocked" if denied and r["mode"] == "enforce" else "approved"}, denied


# §15 Replay.

NOT_OF_A_CALL = """prompt_threat_signal sovereignty_drift detection_degraded denied_by standing repeated unassessed capitulated category
    confidence lost_thread""".split()
ONLY_OF_A_CALL = "decision invariant rule effect high_risk standalone provenance flagged arguments_commitment".split()


def foreign(r):
    """The members that only another kind of receipt has (§4)."""
    scores = ["scores"] if r["tool"] and any(r["scores"].values()) and r["invariant"] in ("", "session_risk") else []
    return scores + [m for m in (NOT_OF_A_CALL if r["tool"] else ONLY_OF_A_CALL) if r[m]]


def outcome(p, r):
    """All that follows from the inputs."""
    out, ground = (tool_call if r["tool"] else text_turn)(p, r)
    refused = ground and r["mode"] == "enforce"
    m = out["m_after"]
    return out | {
        "refused": refused, "would_refuse": ground and not refused,
        "health_band": ("CRITICAL" if refused else "OPTIMAL" if m >= p["optimal"] else
                        "ALERT" if m >= p["recovery"] else "STRESSED"),
        "governor_mode": ("observe" if r["mode"] == "observe" else "refuse" if refused else
                          "correct" if out["intervention"] else "pass")}


def differences(p, r):
    """What does not follow, in words."""
    if not in_range(r):
        return ["an input is out of its range"]
    wrong = [f"it cannot have {m}" for m in foreign(r)] + ([] if reachable(p, r) else ["it starts where no session gets to"])
    return wrong + [f"{m} is {r[m]}, and follows as {v}" for m, v in outcome(p, r).items() if r[m] != v]

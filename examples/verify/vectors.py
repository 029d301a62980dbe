"""Checks verify.py against the test vectors in kernel/testdata (§23)."""
import base64, json, pathlib

import replay as k, verify as v


def unhex(value):
    """Reads numbers in C's hexadecimal notation, at any depth."""
    if isinstance(value, list):
        return [unhex(e) for e in value]
    try:
        return float.fromhex(value) if "0x" in value else value
    except TypeError:
        return value


def canonical_forms(rows):
    for row in rows:
        if "number" in row:
            yield row["want"], v.es6(unhex(row["number"])), row["want"]
        else:
            yield row["want"], v.canonical(json.loads(row["json"], parse_int=float)), row["want"]


def arithmetic(doc):
    functions = {"exp": k.exp, "ln": k.ln, "softmax": lambda p: list(k.softmax(p)), "project": k.project, "divergence":
                 lambda z, y: k.divergence(z, k.lns(z), k.lns(y))}
    for name, rows in doc.items():
        for row in unhex(rows):
            yield f"{name} {row[:-1]}", functions[name](*row[:-1]), row[-1]


def steps(rows, policy):
    for row in rows:
        r = {name: unhex(value) for name, value in row.items()}
        r |= {"scores": dict(zip(v.SCORES, r["scores"])), "standing": row["standing"] or [], "tool": "", "repeated": False, "unassessed": False}
        if row["other_policy"]:
            r |= zip(k.SESSION, k.migrate(policy, [r[m] for m in k.SESSION]))
        got = k.outcome(policy, r)
        for name, want in row["want"].items():
            if name in got:
                yield f"{row['name']}: {name}", got[name], unhex(want)


def commitments(rows):
    for row in rows:
        key = v.opening(bytes.fromhex(row["secret"]), row["nonce"], row["info"])
        yield row["info"], key.hex(), row["opening"]
        yield row["text"], v.commitment(key, row["text"]), row["commitment"]


def log(doc):
    log = v.Log(partial=False)
    for size, root in enumerate(doc["roots"]):
        yield f"root of {size}", base64.b64encode(log.root()).decode(), root
        if size < len(doc["records"]):
            log.add(doc["records"][size].encode())
    size, root = v.open_head(doc["signed_head"])
    yield "signed head", (size, base64.b64encode(root).decode()), (len(doc["records"]), doc["roots"][-1])


def check(folder):
    """Prints every difference, and returns the exit status."""
    folder = pathlib.Path(folder)
    read = lambda name: json.loads((folder / name).read_text(encoding="utf-8"))
    policy = k.complete_policy(v.parse((folder / "policy.json").read_bytes()))
    checks = {
        "canonical.json": canonical_forms(read("canonical.json")), "arithmetic.json": arithmetic(read("arithmetic.json")),
        "steps.json": steps(read("steps.json"), policy), "commitments.json": commitments(read("commitments.json")),
        "log.json": log(read("log.json")), "receipts.jsonl": receipts(folder / "receipts.jsonl"),
    }
    wrong = 0
    for name, pairs in checks.items():
        n = 0
        for n, (what, got, want) in enumerate(pairs, 1):
            if got != want:
                wrong += 1
                print(f"{name}: {what}: got {got}, want {want}")
        print(f"{name}: {n} compared")
    return 1 if wrong else 0


def receipts(file):
    checker = v.Verifier()
    for line in file.read_bytes().splitlines():
        checker.line(file.name, line)
        yield "faults", checker.faults, []

-- The tables and views of an index; VERSION in index.py is theirs.
CREATE TABLE run (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, name TEXT NOT NULL, title TEXT NOT NULL,
    machine TEXT NOT NULL, started TEXT, imported INTEGER NOT NULL, seed INTEGER, kduel TEXT, delta_pct REAL NOT NULL,
    alpha REAL NOT NULL, blocks INTEGER NOT NULL, trials INTEGER NOT NULL, void INTEGER NOT NULL,
    merged INTEGER NOT NULL, measured TEXT, limits TEXT NOT NULL
) STRICT;
CREATE TABLE contender (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, position INTEGER NOT NULL, name TEXT NOT NULL,
    kernel TEXT NOT NULL, release TEXT, sha256 TEXT, cmdline TEXT NOT NULL, scheduler TEXT NOT NULL,
    policy TEXT NOT NULL, measured TEXT, PRIMARY KEY (run, name)
) STRICT;
CREATE TABLE verdict (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, benchmark TEXT NOT NULL, metric TEXT NOT NULL,
    unit TEXT NOT NULL, better TEXT NOT NULL, role TEXT NOT NULL, baseline TEXT NOT NULL, contender TEXT NOT NULL,
    n INTEGER NOT NULL, baseline_mean REAL, baseline_sd REAL, mean REAL, sd REAL, scale TEXT NOT NULL,
    effect_pct REAL, ci_low_pct REAL, ci_high_pct REAL, effect REAL, ci_low REAL, ci_high REAL, verdict TEXT NOT NULL,
    wording TEXT NOT NULL, small INTEGER NOT NULL
) STRICT;
CREATE INDEX verdict_by_metric ON verdict (benchmark, metric, run, contender);
CREATE TABLE value (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, benchmark TEXT NOT NULL, metric TEXT NOT NULL,
    contender TEXT NOT NULL, block INTEGER NOT NULL, value REAL
) STRICT;
CREATE INDEX value_by_metric ON value (benchmark, metric, contender);
CREATE TABLE point (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE, machine TEXT NOT NULL, contender TEXT NOT NULL,
    benchmark TEXT NOT NULL, metric TEXT NOT NULL, unit TEXT NOT NULL, quantity TEXT NOT NULL, n INTEGER NOT NULL,
    mean REAL NOT NULL, sd REAL, PRIMARY KEY (run, benchmark, metric, contender)
) STRICT;
CREATE TABLE skipped (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE VIEW series AS
    SELECT contender.measured AS time, run.path, point.machine, contender.kernel, contender.release, point.contender,
           point.benchmark, point.metric, point.unit, point.quantity, point.mean, point.n
    FROM point JOIN run ON run.id = point.run
    JOIN contender ON contender.run = run.id AND contender.name = point.contender
    WHERE run.merged = 0;
CREATE VIEW headline AS
    SELECT run.started, run.path, run.machine, verdict.benchmark, verdict.metric, verdict.baseline, verdict.contender,
           CASE WHEN verdict.small THEN 'too small to matter' ELSE verdict.verdict END AS verdict,
           verdict.effect_pct, verdict.ci_low_pct, verdict.ci_high_pct, verdict.n,
           run.measured
    FROM verdict JOIN run ON run.id = verdict.run WHERE verdict.role = 'primary';

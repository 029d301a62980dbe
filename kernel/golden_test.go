package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/caddy-lex/lex/kernel"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden compares with a file of testdata, or rewrites it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if that is meant, run: go test ./kernel -update", path)
	}
}

// The same walk must leave the same bits on every platform and for good: a
// single other bit anywhere would break the replay of receipts that exist.
func TestLongWalkIsBitExact(t *testing.T) {
	narrow := kernel.DefaultPolicy()
	narrow.Floor, narrow.Tau, narrow.Eta, narrow.Kappa, narrow.Rho = 0.002, 0.03, 31, 0.83, 0.07
	golden(t, "walk.sha256", walk(t, kernel.DefaultPolicy(), narrow))
	const before = "37ee833025a0acf93f92b4cb18b79614bb4e3121d26a82c769376896dce9de92"
	if got := walk(t, revision0(kernel.DefaultPolicy()), revision0(narrow)); string(got) != before+"\n" {
		t.Errorf("under revision 0 the hash is %s", got)
	}
}

// revision0 is a policy of before there was a revision, with the defaults of then.
func revision0(p kernel.Policy) kernel.Policy {
	p.Revision, p.ThreatSeverity = 0, 0
	p.CUSUMK, p.CUSUMH, p.CUSUMRelief = 0.30, 0.95, 0.15
	p.CUSUMSlowK, p.CUSUMSlowH, p.CUSUMSlowRelief = 0, 0, 0
	return p
}

// walk is the hash of everything that two long walks leave.
func walk(t *testing.T, policies ...kernel.Policy) []byte {
	t.Helper()
	digest := sha256.New()
	write := func(values ...float64) {
		for _, v := range values {
			_ = binary.Write(digest, binary.BigEndian, math.Float64bits(v))
		}
	}
	r := newRandom(20)
	for _, p := range policies {
		k := newKernel(t, p)
		s := k.NewSession()
		for range 10_000 {
			turn := take(t, k, s, r.evidence(), kernel.Enforce, r.output())
			s = turn.Next
			write(turn.Severity, turn.DeltaV, turn.StabilityRatio, turn.LyapunovV, turn.ZShift, turn.SigmaViol, turn.Effort, s.CUSUM)
			if p.Revision > 0 {
				write(turn.MFloor, s.CUSUMSlow)
			}
			for _, point := range []kernel.Point{turn.Pressure, turn.Raw, turn.State, s.Z, s.Carry} {
				write(point[:]...)
			}
		}
	}
	return []byte(hex.EncodeToString(digest.Sum(nil)) + "\n")
}

// take assesses and concludes a turn.
func take(t testing.TB, k *kernel.Kernel, s kernel.Session, e kernel.Evidence, m kernel.Mode, o kernel.Output) kernel.Turn {
	t.Helper()
	turn, err := k.Assess(s, e, m)
	if err != nil {
		t.Fatal(err)
	}
	if turn, err = k.Conclude(turn, o); err != nil {
		t.Fatal(err)
	}
	return turn
}

// A hex64 is a float written exactly, in hexadecimal.
type hex64 float64

func (h hex64) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(h), 'x', -1, 64), nil
}

func (h *hex64) UnmarshalText(b []byte) error {
	v, err := strconv.ParseFloat(string(b), 64)
	*h = hex64(v)
	return err
}

type hexPoint [3]hex64

func hexes(p kernel.Point) hexPoint { return hexPoint{hex64(p[0]), hex64(p[1]), hex64(p[2])} }

func (p hexPoint) point() kernel.Point {
	return kernel.Point{float64(p[0]), float64(p[1]), float64(p[2])}
}

// vector is one step in testdata/steps.json: everything that another
// implementation needs to check itself, under the default policy.
type vector struct {
	Name string `json:"name"`
	// Inputs. The scores are in the order of kernel.Scores.
	X          hexPoint        `json:"x"`
	Z          hexPoint        `json:"z"`
	CUSUM      hex64           `json:"cusum"`
	CUSUMSlow  hex64           `json:"cusum_slow"`
	Carry      hexPoint        `json:"carry"`
	OtherOwner bool            `json:"other_policy"` // the session comes from another policy
	Scores     [6]hex64        `json:"scores"`
	Threat     hex64           `json:"prompt_threat_signal"`
	Drift      bool            `json:"sovereignty_drift"`
	Degraded   bool            `json:"detection_degraded"`
	DeniedBy   string          `json:"denied_by"`
	Standing   []kernel.Reason `json:"standing"`
	Mode       kernel.Mode     `json:"mode"`
	Capitul    bool            `json:"capitulated"`
	Category   kernel.Category `json:"category"`
	Confidence hex64           `json:"confidence"`
	LostThread bool            `json:"lost_thread"`
	Want       vectorOutputs   `json:"want"`
}

type vectorOutputs struct {
	Severity     hex64             `json:"severity"`
	AttackType   kernel.AttackType `json:"attack_type"`
	SlowDrip     bool              `json:"slow_drip"`
	Pressure     hexPoint          `json:"pressure"`
	MFloor       hex64             `json:"m_floor"`
	Raw          hexPoint          `json:"raw_state"`
	State        hexPoint          `json:"state"`
	DeltaV       hex64             `json:"delta_V"`
	Ratio        hex64             `json:"stability_ratio"`
	LyapunovV    hex64             `json:"lyapunov_V"`
	ZShift       hex64             `json:"z_shift"`
	SigmaViol    hex64             `json:"sigma_viol"`
	Effort       hex64             `json:"governor_effort"`
	Intervened   bool              `json:"intervention"`
	Migrated     bool              `json:"migrated"`
	Reasons      []kernel.Reason   `json:"reasons"`
	Refused      bool              `json:"refused"`
	Band         kernel.Band       `json:"health_band"`
	Label        string            `json:"pre_eval_label"`
	GovernorMode string            `json:"governor_mode"`
	Fired        bool              `json:"sensing_fired"`
	Active       string            `json:"sensing_active_pillar"`
	Corrected    bool              `json:"sensing_correction_applied"`
	ZNext        hexPoint          `json:"z_next"`
	CUSUMNext    hex64             `json:"cusum_next"`
	SlowNext     hex64             `json:"cusum_slow_next"`
	CarryNext    hexPoint          `json:"carry_next"`
}

// run takes the step that a vector describes.
func (v vector) run(t *testing.T, k *kernel.Kernel) kernel.Turn {
	t.Helper()
	s := kernel.Session{X: v.X.point(), Z: v.Z.point(), CUSUM: float64(v.CUSUM), CUSUMSlow: float64(v.CUSUMSlow), Carry: v.Carry.point(), Policy: k.PolicyHash()}
	if v.OtherOwner {
		s.Policy = "another"
	}
	e := kernel.Evidence{
		Scores: kernel.Scores{
			Identity: float64(v.Scores[0]), Coercion: float64(v.Scores[1]), Exploitative: float64(v.Scores[2]),
			HarmRequest: float64(v.Scores[3]), Sycophancy: float64(v.Scores[4]), Injection: float64(v.Scores[5]),
		},
		ThreatSignal: float64(v.Threat), SovereigntyDrift: v.Drift, Degraded: v.Degraded,
		DeniedBy: v.DeniedBy, Standing: v.Standing,
	}
	o := kernel.Output{Capitulated: v.Capitul, Category: v.Category, Confidence: float64(v.Confidence), LostThread: v.LostThread}
	return take(t, k, s, e, v.Mode, o)
}

func outputs(turn kernel.Turn) vectorOutputs {
	out := vectorOutputs{
		Severity: hex64(turn.Severity), AttackType: turn.AttackType, SlowDrip: turn.SlowDrip,
		Pressure: hexes(turn.Pressure), MFloor: hex64(turn.MFloor), Raw: hexes(turn.Raw), State: hexes(turn.State),
		DeltaV: hex64(turn.DeltaV), Ratio: hex64(turn.StabilityRatio), LyapunovV: hex64(turn.LyapunovV),
		ZShift: hex64(turn.ZShift), SigmaViol: hex64(turn.SigmaViol), Effort: hex64(turn.Effort),
		Intervened: turn.Intervened, Migrated: turn.Migrated, Reasons: append([]kernel.Reason{}, turn.Reasons...), Refused: turn.Refused,
		Band: turn.Band, Label: turn.Label, GovernorMode: turn.GovernorMode,
		Fired: turn.Sensing.Fired, Corrected: turn.Sensing.CorrectionApplied,
		ZNext: hexes(turn.Next.Z), CUSUMNext: hex64(turn.Next.CUSUM), SlowNext: hex64(turn.Next.CUSUMSlow), CarryNext: hexes(turn.Next.Carry),
	}
	if turn.Sensing.ActivePillar != nil {
		out.Active = turn.Sensing.ActivePillar.String()
	}
	return out
}

// The vectors are in the file, inputs and outputs; the table below only makes
// them anew.
func TestGoldenSteps(t *testing.T) {
	k := newKernel(t, kernel.DefaultPolicy())
	if *update {
		golden(t, "steps.json", lines(t, makeVectors(t, k)))
	}
	text, err := os.ReadFile(filepath.Join("testdata", "steps.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, v := range vectors {
		got, _ := json.Marshal(outputs(v.run(t, k)))
		want, _ := json.Marshal(v.Want)
		if !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", v.Name, got, want)
		}
		seen = append(seen, branches(v)...)
	}
	for _, branch := range allBranches {
		if !slices.Contains(seen, branch) {
			t.Errorf("no vector takes the branch %q", branch)
		}
	}
}

// lines writes one vector a line, so that a change shows as such.
func lines(t *testing.T, vectors []vector) []byte {
	t.Helper()
	var rows [][]byte
	for _, v := range vectors {
		row, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return slices.Concat([]byte("[\n"), bytes.Join(rows, []byte(",\n")), []byte("\n]\n"))
}

// branches names what a vector shows.
func branches(v vector) []string {
	w := v.Want
	active := 0
	for _, s := range w.State {
		if s == hex64(kernel.DefaultPolicy().Tau) {
			active++
		}
	}
	out := []string{
		string(w.AttackType), string(w.Band), w.Label, w.GovernorMode,
		"active " + strconv.Itoa(active), "sensed " + w.Active,
		"corrected " + strconv.FormatBool(w.Corrected), "migrated " + strconv.FormatBool(w.Migrated),
		"alarm " + strconv.FormatBool(w.SlowDrip), "degraded " + strconv.FormatBool(v.Degraded),
		"descends " + strconv.FormatBool(w.DeltaV < 0), "rests " + strconv.FormatBool(w.DeltaV == 0),
		"category " + string(v.Category), "lost " + strconv.FormatBool(v.LostThread),
	}
	for _, r := range w.Reasons {
		out = append(out, "reason "+string(r))
	}
	return out
}

var allBranches = []string{
	"identity", "coercion", "exploitative", "harm_request", "sycophancy", "multi", "slow_drip", "none",
	"OPTIMAL", "ALERT", "STRESSED", "CRITICAL", "CLEAR", "WATCH", "THREAT",
	"observe", "refuse", "correct", "pass",
	"active 0", "active 1", "active 2", "sensed ", "sensed C", "sensed R", "sensed S",
	"corrected true", "corrected false", "migrated true", "migrated false",
	"alarm true", "alarm false", "degraded true", "degraded false",
	"descends true", "descends false", "rests true", "rests false",
	"category ", "category identity_adoption", "category harmful_compliance", "lost true", "lost false",
	"reason operator_policy", "reason semantic_classifier", "reason contrastive_threat", "reason slow_drip",
	"reason sovereignty_drift", "reason constitutional_floor", "reason capitulation",
}

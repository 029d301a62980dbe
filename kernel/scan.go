package kernel

import (
	"crypto/sha256"
	"strconv"
	"unicode/utf8"
)

// scanReceipt reads a record in canonical form, several times faster than a
// reader of any JSON can: the members are all there, in the order of their
// names, without space. It is for verifying an archive of millions. sealed says
// that the record was read to its end and that the rest of its bytes hash to its
// id; false leaves everything to [ParseReceipt].
func scanReceipt(record []byte) (r Receipt, sealed bool) {
	s := scanner{record: string(record), ok: true}
	for i := range receiptMembers {
		m := &receiptMembers[i]
		if m.name == `,"repeated":` { // it is left out when false
			r.Repeated = s.take(`,"repeated":true`)
			continue
		}
		s.expect(m.name)
		m.read(&s, &r)
	}
	s.expect("}")
	if !s.ok || s.at != len(record) {
		return r, false
	}
	h := sha256.New()
	h.Write(record[:s.beforeID])
	h.Write(record[s.afterID:])
	var sum [sha256.Size]byte
	return r, r.ID == r.prefix()+digits(h.Sum(sum[:0]))
}

// id reads the id and notes where its member stands.
func (s *scanner) id(r *Receipt) {
	s.beforeID = s.at - len(`,"id":`)
	r.ID = s.text()
	s.afterID = s.at
}

// A receiptMember is a member with what stands before its value, and its reader.
type receiptMember struct {
	name string
	read func(*scanner, *Receipt)
}

// receiptMembers are the members of a receipt in canonical order.
var receiptMembers = [...]receiptMember{
	{`{"arguments_commitment":`, texts(func(r *Receipt) *string { return &r.ArgumentsCommitment })},
	{`,"attack_type":`, texts(func(r *Receipt) *AttackType { return &r.AttackType })},
	{`,"capitulated":`, flags(func(r *Receipt) *bool { return &r.Capitulated })},
	{`,"carry":`, points(func(r *Receipt) *Point { return &r.Carry })},
	{`,"carry_next":`, points(func(r *Receipt) *Point { return &r.CarryNext })},
	{`,"category":`, texts(func(r *Receipt) *Category { return &r.Category })},
	{`,"confidence":`, numbers(func(r *Receipt) *float64 { return &r.Confidence })},
	{`,"coverage":`, func(s *scanner, r *Receipt) { r.Coverage = s.coverage() }},
	{`,"cusum":`, numbers(func(r *Receipt) *float64 { return &r.CUSUM })},
	{`,"cusum_next":`, numbers(func(r *Receipt) *float64 { return &r.CUSUMNext })},
	{`,"decision":`, texts(func(r *Receipt) *ToolDecision { return &r.Decision })},
	{`,"delta_V":`, numbers(func(r *Receipt) *float64 { return &r.DeltaV })},
	{`,"denied_by":`, texts(func(r *Receipt) *string { return &r.DeniedBy })},
	{`,"detection_degraded":`, flags(func(r *Receipt) *bool { return &r.Degraded })},
	{`,"dialect":`, texts(func(r *Receipt) *string { return &r.Dialect })},
	{`,"endpoint":`, texts(func(r *Receipt) *string { return &r.Endpoint })},
	{`,"governor_effort":`, numbers(func(r *Receipt) *float64 { return &r.Effort })},
	{`,"governor_mode":`, texts(func(r *Receipt) *string { return &r.GovernorMode })},
	{`,"health_band":`, texts(func(r *Receipt) *Band { return &r.Band })},
	{`,"id":`, (*scanner).id},
	{`,"intervention":`, flags(func(r *Receipt) *bool { return &r.Intervened })},
	{`,"invariant":`, texts(func(r *Receipt) *string { return &r.Invariant })},
	{`,"lost_thread":`, flags(func(r *Receipt) *bool { return &r.LostThread })},
	{`,"lyapunov_V":`, numbers(func(r *Receipt) *float64 { return &r.LyapunovV })},
	{`,"m_after":`, numbers(func(r *Receipt) *float64 { return &r.MAfter })},
	{`,"m_before":`, numbers(func(r *Receipt) *float64 { return &r.MBefore })},
	{`,"migrated":`, flags(func(r *Receipt) *bool { return &r.Migrated })},
	{`,"mode":`, texts(func(r *Receipt) *Mode { return &r.Mode })},
	{`,"model":`, texts(func(r *Receipt) *string { return &r.Model })},
	{`,"nonce":`, texts(func(r *Receipt) *string { return &r.Nonce })},
	{`,"outcome":`, texts(func(r *Receipt) *Outcome { return &r.Outcome })},
	{`,"output_commitment":`, texts(func(r *Receipt) *string { return &r.OutputCommitment })},
	{`,"policy":`, texts(func(r *Receipt) *string { return &r.Policy })},
	{`,"pre_eval_label":`, texts(func(r *Receipt) *string { return &r.Label })},
	{`,"pressure":`, points(func(r *Receipt) *Point { return &r.Pressure })},
	{`,"prev":`, texts(func(r *Receipt) *string { return &r.Prev })},
	{`,"prompt_commitment":`, texts(func(r *Receipt) *string { return &r.PromptCommitment })},
	{`,"prompt_threat_signal":`, numbers(func(r *Receipt) *float64 { return &r.ThreatSignal })},
	{`,"raw_state":`, points(func(r *Receipt) *Point { return &r.Raw })},
	{`,"reasons":`, func(s *scanner, r *Receipt) { r.Reasons = s.reasons() }},
	{`,"refused":`, flags(func(r *Receipt) *bool { return &r.Refused })},
	{`,"repeated":`, nil},
	{`,"resent":`, flags(func(r *Receipt) *bool { return &r.Resent })},
	{`,"scores":`, func(s *scanner, r *Receipt) { r.Scores = s.scores() }},
	{`,"session_id":`, texts(func(r *Receipt) *string { return &r.SessionID })},
	{`,"severity":`, numbers(func(r *Receipt) *float64 { return &r.Severity })},
	{`,"sigma_viol":`, numbers(func(r *Receipt) *float64 { return &r.SigmaViol })},
	{`,"slow_drip":`, flags(func(r *Receipt) *bool { return &r.SlowDrip })},
	{`,"sovereignty_drift":`, flags(func(r *Receipt) *bool { return &r.SovereigntyDrift })},
	{`,"stability_ratio":`, numbers(func(r *Receipt) *float64 { return &r.StabilityRatio })},
	{`,"standing":`, func(s *scanner, r *Receipt) { r.Standing = s.reasons() }},
	{`,"state":`, points(func(r *Receipt) *Point { return &r.State })},
	{`,"timestamp":`, func(s *scanner, r *Receipt) { r.Timestamp = s.integer() }},
	{`,"tool":`, texts(func(r *Receipt) *string { return &r.Tool })},
	{`,"turn":`, func(s *scanner, r *Receipt) { r.Turn = int(s.integer()) }},
	{`,"version":`, texts(func(r *Receipt) *string { return &r.Version })},
	{`,"would_refuse":`, flags(func(r *Receipt) *bool { return &r.WouldRefuse })},
	{`,"x":`, points(func(r *Receipt) *Point { return &r.X })},
	{`,"z":`, points(func(r *Receipt) *Point { return &r.Z })},
	{`,"z_next":`, points(func(r *Receipt) *Point { return &r.ZNext })},
	{`,"z_shift":`, numbers(func(r *Receipt) *float64 { return &r.ZShift })},
}

func texts[T ~string](at func(*Receipt) *T) func(*scanner, *Receipt) {
	return func(s *scanner, r *Receipt) { *at(r) = T(s.text()) }
}

func flags(at func(*Receipt) *bool) func(*scanner, *Receipt) {
	return func(s *scanner, r *Receipt) { *at(r) = s.flag() }
}

func numbers(at func(*Receipt) *float64) func(*scanner, *Receipt) {
	return func(s *scanner, r *Receipt) { *at(r) = s.number() }
}

func points(at func(*Receipt) *Point) func(*scanner, *Receipt) {
	return func(s *scanner, r *Receipt) { *at(r) = s.point() }
}

// A scanner reads the values of a canonical record. Once something is not as
// expected, ok is false and stays so, and what is read is of no use.
type scanner struct {
	record string
	at     int
	ok     bool

	beforeID, afterID int
}

// expect reads exactly this.
func (s *scanner) expect(literal string) {
	s.ok = s.take(literal) && s.ok
}

// take reads this if it is what comes next.
func (s *scanner) take(literal string) bool {
	end := s.at + len(literal)
	if end > len(s.record) || s.record[s.at:end] != literal {
		return false
	}
	s.at = end
	return true
}

// text reads a string without escapes.
func (s *scanner) text() string {
	s.expect(`"`)
	ascii := true
	for i := s.at; i < len(s.record); i++ {
		c := s.record[i]
		if c == '"' {
			text := s.record[s.at:i]
			s.at, s.ok = i+1, s.ok && (ascii || utf8.ValidString(text))
			return text
		}
		if c == '\\' || c < ' ' {
			break
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	s.ok = false
	return ""
}

// number reads a number without exponent.
func (s *scanner) number() float64 {
	n, point, rest := 0, -1, s.record[s.at:]
	for ; n < len(rest); n++ {
		if c := rest[n]; c == '.' && point < 0 && n > 0 {
			point = n
		} else if (c < '0' || c > '9') && (c != '-' || n > 0) {
			break
		}
	}
	s.at += n
	if n == 1 && rest[0] != '-' { // most are 0
		return float64(rest[0] - '0')
	}
	v, err := strconv.ParseFloat(rest[:n], 64)
	s.ok = s.ok && err == nil && plain(rest[:n], point)
	return v
}

// plain reports whether a decimal is written as in canonical JSON: no zero that
// could be left out, no point without digits around it, no -0.
func plain(digits string, point int) bool {
	if point >= 0 && digits[len(digits)-1] == '0' || point == len(digits)-1 || digits == "-0" {
		return false
	}
	if digits[0] == '-' {
		digits, point = digits[1:], point-1
	}
	return digits != "" && (digits[0] != '0' || len(digits) == 1 || point == 1)
}

func (s *scanner) integer() int64 {
	v := s.number()
	s.ok = s.ok && v == float64(int64(v)) && v <= maxInteger && v >= -maxInteger
	return int64(v)
}

func (s *scanner) flag() bool {
	if s.take("true") {
		return true
	}
	s.expect("false")
	return false
}

func (s *scanner) point() (p Point) {
	for i, lead := range [...]string{"[", ",", ","} {
		s.expect(lead)
		p[i] = s.number()
	}
	s.expect("]")
	return p
}

// list calls each for every element of an array.
func (s *scanner) list(each func()) {
	s.expect("[")
	if s.take("]") {
		return
	}
	for each(); s.ok && s.take(","); {
		each()
	}
	s.expect("]")
}

func (s *scanner) reasons() []Reason {
	reasons := []Reason{}
	s.list(func() { reasons = append(reasons, Reason(s.text())) })
	return reasons
}

func (s *scanner) scores() (v Scores) {
	for _, m := range [...]struct {
		name string
		to   *float64
	}{
		{`{"coercion":`, &v.Coercion},
		{`,"exploitative":`, &v.Exploitative},
		{`,"harm_request":`, &v.HarmRequest},
		{`,"identity":`, &v.Identity},
		{`,"injection":`, &v.Injection},
		{`,"sycophancy":`, &v.Sycophancy},
	} {
		s.expect(m.name)
		*m.to = s.number()
	}
	s.expect("}")
	return v
}

func (s *scanner) coverage() (v Coverage) {
	s.expect(`{"bytes_forwarded":`)
	v.BytesForwarded = int(s.integer())
	s.expect(`,"bytes_inspected":`)
	v.BytesInspected = int(s.integer())
	s.expect(`,"detectors":`)
	s.list(func() { v.Detectors = append(v.Detectors, s.detectorRun()) })
	s.expect(`,"inspected":`)
	s.list(func() { v.Inspected = append(v.Inspected, s.coveredPart()) })
	if s.take(`,"redacted":`) {
		s.list(func() { v.Redacted = append(v.Redacted, s.skippedPart()) })
		s.ok = s.ok && len(v.Redacted) > 0 // it is left out when empty
	}
	s.expect(`,"skipped":`)
	s.list(func() { v.Skipped = append(v.Skipped, s.skippedPart()) })
	s.expect(`,"unknown":`)
	s.list(func() { v.Unknown = append(v.Unknown, s.skippedPart()) })
	s.expect("}")
	return v
}

func (s *scanner) detectorRun() (v DetectorRun) {
	s.expect(`{"name":`)
	v.Name = s.text()
	s.expect(`,"outcome":`)
	v.Outcome = DetectorOutcome(s.text())
	s.expect(`,"why":`)
	v.Why = s.text()
	s.expect("}")
	return v
}

func (s *scanner) coveredPart() (v CoveredPart) {
	s.expect(`{"bytes":`)
	v.Bytes = int(s.integer())
	s.expect(`,"detector":`)
	v.Detector = s.text()
	s.expect(`,"part":`)
	v.Part = s.text()
	s.expect("}")
	return v
}

func (s *scanner) skippedPart() (v SkippedPart) {
	s.expect(`{"bytes":`)
	v.Bytes = int(s.integer())
	s.expect(`,"part":`)
	v.Part = s.text()
	s.expect(`,"why":`)
	v.Why = s.text()
	s.expect("}")
	return v
}

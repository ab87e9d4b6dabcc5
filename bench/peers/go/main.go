// The peer "go-httputil": httputil.ReverseProxy with the features that Breakwater has on by default, written as a Go
// developer would with the standard library alone. Arguments: PORT URL...
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxInFlight         = 256
	consecutiveFailures = 5
	failureRatio        = 0.5
	minimumRequests     = 10
	windowSeconds       = 60
	openFor             = 15 * time.Second
	healthInterval      = 5 * time.Second
	healthTimeout       = time.Second
	totalTimeout        = 30 * time.Second
)

// breaker opens on consecutive failures or on the ratio in a window of one-second buckets; one probe closes it.
type breaker struct {
	mu          sync.Mutex
	buckets     [windowSeconds]struct{ total, failures uint32 }
	second      int64
	total       uint32
	failures    uint32
	consecutive int
	openUntil   time.Time
	open        bool
	probing     bool
}

func (b *breaker) admit(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.open {
		return true
	}
	if b.probing || now.Before(b.openUntil) {
		return false
	}
	b.probing = true
	return true
}

func (b *breaker) roll(second int64) {
	if b.second == 0 || second-b.second >= windowSeconds {
		b.buckets = [windowSeconds]struct{ total, failures uint32 }{}
		b.total, b.failures = 0, 0
	} else {
		for at := b.second + 1; at <= second; at++ {
			bucket := &b.buckets[at%windowSeconds]
			b.total -= bucket.total
			b.failures -= bucket.failures
			bucket.total, bucket.failures = 0, 0
		}
	}
	b.second = second
}

func (b *breaker) settle(ok, neutral bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		b.probing = false
		if neutral {
			return
		}
		if ok {
			b.open = false
			b.consecutive = 0
			b.second = 0
		} else {
			b.openUntil = now.Add(openFor)
		}
		return
	}
	if neutral {
		return
	}
	if second := now.Unix(); second > b.second {
		b.roll(second)
	}
	bucket := &b.buckets[b.second%windowSeconds]
	bucket.total++
	b.total++
	if ok {
		b.consecutive = 0
		return
	}
	bucket.failures++
	b.failures++
	b.consecutive++
	if b.consecutive >= consecutiveFailures || (b.total >= minimumRequests && float64(b.failures) >= failureRatio*float64(b.total)) {
		b.open = true
		b.openUntil = now.Add(openFor)
	}
}

// histogram counts durations as a Prometheus client does.
type histogram struct {
	counts [12]uint64
	sum    uint64
}

var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

func (h *histogram) observe(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	atomic.AddUint64(&h.counts[i], 1)
	atomic.AddUint64(&h.sum, uint64(d))
}

type upstream struct {
	url      *url.URL
	id       string
	healthy  atomic.Bool
	inFlight atomic.Int64
	breaker  breaker
	duration histogram
	outcomes [2]uint64
}

type exchange struct {
	upstream *upstream
	failed   bool
	canceled bool
}

type contextKey struct{}

// owned are the fields that no client may set; ReverseProxy itself then writes X-Forwarded-For.
var owned = []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Real-Ip", "Forwarded", "Via"}

type proxy struct {
	upstreams []*upstream
	next      uint64
	inFlight  atomic.Int64
	requests  sync.Map
	duration  histogram
	reverse   *httputil.ReverseProxy
	log       io.Writer
}

// recorder sees the status and the bytes that go to the client.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(chunk []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(chunk)
	r.bytes += int64(n)
	return n, err
}

func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (p *proxy) pick(now time.Time) (*upstream, string) {
	reason := "no_upstream_healthy"
	start := atomic.AddUint64(&p.next, 1)
	for i := range p.upstreams {
		u := p.upstreams[(start+uint64(i))%uint64(len(p.upstreams))]
		if !u.healthy.Load() {
			continue
		}
		if u.breaker.admit(now) {
			return u, ""
		}
		reason = "breaker_open"
	}
	return nil, reason
}

func refuse(w http.ResponseWriter, reason string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintf(w, `{"title":"Service Unavailable","status":503,"reason":%q}`, reason)
}

func requestID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	rec := &recorder{ResponseWriter: w}
	id := requestID()
	rec.Header().Set("X-Request-Id", id)
	r.Header.Set("X-Request-Id", id)
	reason, target := "", ""
	if p.inFlight.Add(1) > maxInFlight {
		reason = "shed_capacity"
		refuse(rec, reason)
	} else if u, why := p.pick(started); u == nil {
		reason = why
		refuse(rec, reason)
	} else {
		target = u.id
		u.inFlight.Add(1)
		ex := &exchange{upstream: u}
		p.forward(rec, r, ex)
		now := time.Now()
		u.inFlight.Add(-1)
		ok := !ex.failed && rec.status < 500
		u.breaker.settle(ok, ex.canceled, now)
		u.duration.observe(now.Sub(started))
		if ok {
			atomic.AddUint64(&u.outcomes[0], 1)
		} else {
			atomic.AddUint64(&u.outcomes[1], 1)
		}
	}
	p.inFlight.Add(-1)
	elapsed := time.Since(started)
	p.count(r.Method, rec.status)
	p.duration.observe(elapsed)
	p.access(r, rec, id, target, reason, elapsed)
}

// forward settles as canceled when ReverseProxy panics because the client left or the answer broke off.
func (p *proxy) forward(w http.ResponseWriter, r *http.Request, ex *exchange) {
	defer func() {
		if err := recover(); err != nil {
			if err != http.ErrAbortHandler {
				panic(err)
			}
			ex.canceled = r.Context().Err() != nil
			ex.failed = !ex.canceled
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), contextKey{}, ex), totalTimeout)
	defer cancel()
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

type counterKey struct {
	method string
	status int
}

func (p *proxy) count(method string, status int) {
	key := counterKey{method, status}
	counter, ok := p.requests.Load(key)
	if !ok {
		counter, _ = p.requests.LoadOrStore(key, new(uint64))
	}
	atomic.AddUint64(counter.(*uint64), 1)
}

// line is one access line, with the members that Breakwater writes.
type line struct {
	Level      int     `json:"level"`
	Time       int64   `json:"time"`
	Msg        string  `json:"msg"`
	RequestID  string  `json:"request_id"`
	Method     string  `json:"method"`
	Path       string  `json:"path"`
	Status     int     `json:"status"`
	Bytes      int64   `json:"bytes"`
	DurationMs float64 `json:"duration_ms"`
	ClientIP   string  `json:"client_ip"`
	Route      string  `json:"route"`
	Pool       string  `json:"pool"`
	Upstream   *string `json:"upstream"`
	Attempts   int     `json:"attempts"`
	Reason     *string `json:"reason"`
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (p *proxy) access(r *http.Request, rec *recorder, id, target, reason string, elapsed time.Duration) {
	client, _, _ := net.SplitHostPort(r.RemoteAddr)
	text, err := json.Marshal(line{
		Level: 30, Time: time.Now().UnixMilli(), Msg: "access", RequestID: id, Method: r.Method, Path: r.URL.Path, Status: rec.status,
		Bytes: rec.bytes, DurationMs: float64(elapsed.Microseconds()) / 1000, ClientIP: client, Route: "/*", Pool: "default",
		Upstream: orNull(target), Attempts: 1, Reason: orNull(reason),
	})
	if err == nil {
		p.log.Write(append(text, '\n'))
	}
}

func (p *proxy) poll(u *upstream, client *http.Client) {
	for {
		response, err := client.Get(u.url.String() + "/healthz")
		healthy := err == nil && response.StatusCode < 300
		if err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		u.healthy.Store(healthy)
		time.Sleep(healthInterval)
	}
}

func main() {
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost:   128,
		MaxConnsPerHost:       128,
		IdleConnTimeout:       4 * time.Second,
		ResponseHeaderTimeout: 5 * time.Second,
		DisableCompression:    true,
	}
	p := &proxy{log: os.Stdout}
	p.reverse = &httputil.ReverseProxy{
		Transport: transport,
		Director: func(r *http.Request) {
			u := r.Context().Value(contextKey{}).(*exchange).upstream
			for _, name := range owned {
				r.Header.Del(name)
			}
			client, _, _ := net.SplitHostPort(r.RemoteAddr)
			r.Header.Set("X-Real-Ip", client)
			r.Header.Set("X-Forwarded-Host", r.Host)
			r.Header.Set("X-Forwarded-Proto", "http")
			r.Header.Set("X-Forwarded-Port", os.Args[1])
			r.Header.Set("Forwarded", "for="+client+";host=\""+r.Host+"\";proto=http")
			r.Header.Set("Via", "1.1 go")
			r.URL.Scheme = u.url.Scheme
			r.URL.Host = u.url.Host
			r.Host = u.url.Host
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			ex := r.Context().Value(contextKey{}).(*exchange)
			ex.canceled = r.Context().Err() == context.Canceled
			ex.failed = !ex.canceled
			w.WriteHeader(http.StatusBadGateway)
		},
		BufferPool: &buffers{sync.Pool{New: func() any { return make([]byte, 32*1024) }}},
	}
	client := &http.Client{Timeout: healthTimeout}
	for _, raw := range os.Args[2:] {
		target, err := url.Parse(raw)
		if err != nil {
			panic(err)
		}
		u := &upstream{url: target, id: strings.TrimPrefix(raw, "http://")}
		p.upstreams = append(p.upstreams, u)
		go p.poll(u, client)
	}
	server := &http.Server{Addr: "127.0.0.1:" + os.Args[1], Handler: p, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 60 * time.Second}
	panic(server.ListenAndServe())
}

type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte    { return b.pool.Get().([]byte) }
func (b *buffers) Put(buf []byte) { b.pool.Put(buf) }

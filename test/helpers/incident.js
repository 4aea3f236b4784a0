'use strict'

// A slow request that delays others, as span lines.

const { span, split } = require('./span-files')

const STACK = `    at work (/app/heavy.js:3:5)
    at handler (/app/heavy.js:9:1)
  ── http connection accepted · HTTPINCOMINGMESSAGE · 71 ms earlier ──
    at start (/app/index.js:1:1)`

/** A slow request, its blocking callbacks, and the spans that it delayed. */
function incident () {
  const slow = span({ name: 'GET /slow', ms: 130, attributes: split({ run: 120, waited: 10 }, { unknown: 10 }) })
  const run = (/** @type {number} */ ms, /** @type {string} */ stack) => ({
    ...span({ name: 'blocked', kind: 'INTERNAL', ms, attributes: { 'longstack.blocked_ms': ms, 'code.stacktrace': stack } }),
    traceId: slow.traceId,
    parentSpanId: slow.spanId
  })
  const victim = (/** @type {number} */ ms, /** @type {string} */ at) => span({
    name: 'GET /cheap',
    ms: ms + 3,
    attributes: {
      ...split({ run: 1, waited: 2, delayed: ms }, { TIMER: 1.4, TCP: 0.6 }, [
        { ms: 1.3, at: 'nap (/app/lib/nap.js:3:9)', until: 'TIMER', label: 'setTimeout(1)' },
        { ms: 0.4, count: 2, at: 'load (/app/lib/user.js:7:11) via pg', until: 'TCP 127.0.0.1:5432', label: 'await' },
        { ms: 0.2, until: 'TCP 127.0.0.1:5432' },
        { ms: 0.1, at: 'last (/app/lib/nap.js:9:9)', until: 'TIMER' }
      ]),
      'url.path': '/cheap/1',
      'longstack.delayed_by': [{ spanId: slow.spanId, name: 'GET /slow', ms, at }, { ms: 0.4 }]
    }
  })
  return [run(50, STACK), run(70, STACK.replace(':3:5', ':4:5')), victim(45, 'work (/app/heavy.js:3:5)'), victim(60, 'work (/app/heavy.js:3:5)'), slow]
}

module.exports = { STACK, incident }

'use strict'

// Waits of requests, on routes whose program measures its own waits. Limits that hold on any machine compare
// a span with that measure: no wait is longer, and it is shorter only by code that ran meanwhile. A request
// waited at least as long as the loop was idle by Node's own count. A machine that withholds the processor
// may leave nothing of a wait, so each test may try again.

const test = require('ava')
const { runServer, timesOf, parseSite, fixtures } = require('../helpers/critical-path')
const { patient } = require('../helpers/starved')

const TOLERANCE = 1 // ms between the clock readings of the program and those of its hooks
const ROUNDING = 0.001 // ms
const DUE = 90 // ms of the timer of restDelayed
const MAX_WAITS = 10
const MAX_CALLERS = 8
const MIN_SHARE = 1 / 100 // of the duration, of a part that is listed
const MAIN_PART = 0.6 // of a measured wait, of which other sites may have a little

/**
 * @typedef {import('../helpers/critical-path').SpanRecord} SpanRecord
 * @typedef {import('../helpers/critical-path').Outcome} Outcome
 * @typedef {import('../helpers/critical-path').Measures} Measures
 * @typedef {import('ava').ExecutionContext} Context
 *
 * @typedef {object} Expectations of one request
 * @property {string} path
 * @property {number} [after] ms after the first request of the case
 * @property {'read' | 'readSlowly' | 'abort' | 'leaveOpen'} [client]
 * @property {Record<string, string>} [waits] the function that waits, or several that may be told, the
 *   measured one first; and subsystems and port of what ends it: `TCP:database`, `TCP|HTTP`
 * @property {string[]} [beside] functions that wait as well, off the path
 * @property {string[]} [pending] functions that nobody waits for: in no mode may they be told
 * @property {string[]} [unproven] measured waits whose length is known, but not their site
 * @property {Record<string, number | number[]>} [counts] waits at a site
 * @property {Record<string, RegExp>} [labels]
 * @property {Record<string, string>} [via] package that waits for a function
 * @property {string} [end] longstack.end
 *
 * @typedef {object} Case
 * @property {string} name
 * @property {Expectations[]} requests sent at once
 * @property {boolean} [continues] it uses what the case before left
 * @property {(t: Context, outcome: Outcome) => void} [check] what else holds
 */

/** @type {Case[]} */
const cases = [
  {
    name: 'awaits one after another',
    requests: [{
      path: '/sequence',
      waits: { loadUser: 'TCP:database', nap: 'TIMER', loadRole: 'TCP:database' },
      labels: { loadUser: /^await/ }
    }]
  },
  {
    name: 'a file read by fs.promises',
    requests: [{ path: '/read-files', waits: { readConfig: 'FS' } }]
  },
  {
    name: 'equal sites are merged',
    requests: [{ path: '/repeat', waits: { loadRole: 'TCP:database' }, counts: { loadRole: 3 } }]
  },
  {
    name: 'Promise.all waits for its slowest',
    requests: [{ path: '/all', waits: { loadUser: 'TCP:database' }, beside: ['loadRole', 'nap'] }]
  },
  {
    name: 'Promise.allSettled waits for its slowest, whatever fails before',
    requests: [{ path: '/all-settled', waits: { loadUser: 'TCP:database' }, beside: ['loadRole', 'nap'] }]
  },
  {
    name: 'Promise.race waits for its fastest',
    requests: [{ path: '/race', waits: { loadRole: 'TCP:database' }, beside: ['loadUser'] }]
  },
  {
    name: 'Promise.any waits for the fastest that is fulfilled',
    requests: [{ path: '/any', waits: { loadRole: 'TCP:database' }, beside: ['loadUser', 'nap'] }]
  },
  {
    name: 'of nested async functions the innermost is told',
    requests: [{ path: '/nested', waits: { loadUser: 'TCP:database' }, beside: ['callMiddle', 'callInner'] }]
  },
  {
    name: 'a pooled connection to a database in another process',
    requests: [{ path: '/remote', waits: { queryRemote: 'TCP:remote' } }]
  },
  {
    name: 'a library that waits is told beside the frame that called it',
    requests: [{ path: '/library', waits: { askLibrary: 'TCP:database' }, via: { askLibrary: 'fakedb' } }]
  },
  {
    name: 'an interval that is never cleared explains nothing',
    requests: [{ path: '/leak', waits: { loadUser: 'TCP:database' }, pending: ['leakInterval'] }]
  },
  {
    name: 'a heartbeat explains nothing',
    requests: [{ path: '/heartbeat', waits: { loadUser: 'TCP:database' }, pending: ['beatHeart'] }]
  },
  {
    name: 'a prefetch awaited before it is there is the wait, and not what went on meanwhile',
    requests: [{
      path: '/prefetch-late',
      waits: { loadUser: 'TCP:database' },
      beside: ['nap', 'prefetchLate']
    }]
  },
  {
    name: 'a prefetch awaited when it is there is no wait',
    requests: [{ path: '/prefetch-early', waits: { nap: 'TIMER' }, beside: ['loadRole', 'prefetchEarly'] }]
  },
  {
    name: 'a prefetch that is never awaited is no wait',
    requests: [{ path: '/prefetch-unused', waits: { nap: 'TIMER' }, beside: ['loadUser', 'prefetchUnused'] }]
  },
  {
    name: 'a pipeline of a file through gzip',
    requests: [{ path: '/gzip', waits: { compress: 'FS|ZLIB|TCP|HTTP|STREAM' } }],
    check: (t, { records }) => {
      const { bySubsystem } = timesOf(serverSpan(records, '/gzip'))
      const text = JSON.stringify(bySubsystem)
      t.true((bySubsystem.ZLIB ?? 0) > 2 * (bySubsystem.FS ?? 0), `what took long is the compression: ${text}`)
    }
  },
  {
    name: "a Readable of the program's own",
    // The end of a stream is told to whoever reads it by a resource made there.
    requests: [{ path: '/readable', waits: { '_read|readSlowly': 'TIMER|STREAM' } }]
  },
  {
    name: 'a client that reads slowly',
    requests: [{ path: '/large', client: 'readSlowly', waits: { sendLarge: 'TCP|HTTP|STREAM' } }]
  },
  {
    name: 'a pool of workers',
    requests: [{ path: '/worker', waits: { askWorker: 'MESSAGE|WORKER' } }]
  },
  {
    name: 'fetch from another server of the process',
    requests: [{ path: '/fetch', waits: { fetchUpstream: 'TCP|HTTP' } }],
    check: (t, outcome) => checkUpstream(t, outcome, '/fetch', '/upstream', 'fetchUpstream')
  },
  {
    name: 'http.get with a callback',
    requests: [{ path: '/http', waits: { getUpstream: 'TCP|HTTP' } }],
    check: (t, outcome) => checkUpstream(t, outcome, '/http', '/upstream-http', 'getUpstream')
  },
  {
    name: 'http.get on a connection that another request opened',
    continues: true,
    requests: [{ path: '/http-again', waits: { getUpstream: 'TCP|HTTP' } }]
  },
  {
    name: 'events.once of an emitter that belongs to no request',
    // On a busy machine a tick is due at once
    requests: [{ path: '/tick', waits: { awaitTick: 'TIMER' }, counts: { awaitTick: [2, 3] } }]
  },
  {
    name: 'a turn that another request releases',
    requests: [
      { path: '/turn-holder', waits: { holdTurn: 'TIMER' } },
      { path: '/turn', after: 20, waits: { takeTurn: 'GET /turn-holder of another request' } }
    ]
  },
  {
    name: 'a queue that binds its callbacks',
    requests: [
      { path: '/bound-holder', waits: { keepBoundTurn: 'TIMER' } },
      { path: '/bound', after: 20, waits: { takeBoundTurn: '' } }
    ]
  },
  {
    name: 'a queue of bare callbacks',
    requests: [
      { path: '/bare-holder', waits: { keepBareTurn: 'TIMER' } },
      { path: '/bare', after: 20, unproven: ['takeBareTurn'] }
    ]
  },
  {
    name: 'callbacks on a connection that the request opens',
    requests: [{ path: '/lazy', unproven: ['openLazily'] }]
  },
  {
    name: 'callbacks on a connection that another request opened',
    continues: true,
    requests: [{ path: '/lazy-again', unproven: ['queryByCallback'] }],
    check: (t, { records, measures }) => {
      const { bySubsystem, run, delayed } = timesOf(serverSpan(records, '/lazy-again'))
      const measured = sum(measures['/lazy-again'].waits.queryByCallback)
      t.true((bySubsystem.TCP ?? 0) >= measured - run - delayed - TOLERANCE, 'what ended it is the socket')
    }
  },
  {
    name: 'timers with callbacks',
    requests: [{
      path: '/timers',
      waits: { startTimers: 'TIMER', continueTimers: 'TIMER' },
      labels: { startTimers: /^setTimeout\(50\)/, continueTimers: /^setTimeout\(30\)/ }
    }]
  },
  {
    name: 'fs.readFile with a callback',
    requests: [{ path: '/read-callback', waits: { readByCallback: 'FS' } }]
  },
  {
    name: 'microtasks are no wait',
    requests: [{ path: '/microtasks', beside: ['runMicrotasks'] }]
  },
  {
    name: "the request's own code is no wait",
    requests: [{ path: '/compute', beside: ['compute'] }]
  },
  {
    name: 'own code between two waits',
    requests: [{
      path: '/compute-between',
      waits: { loadUser: 'TCP:database', nap: 'TIMER' },
      beside: ['computeBetween']
    }]
  },
  {
    name: 'three requests at once on one connection wait each for its own',
    requests: [
      { path: '/shared-user', waits: { loadUser: 'TCP:database' }, beside: ['loadRole', 'nap'] },
      { path: '/shared-role', waits: { loadRole: 'TCP:database' }, beside: ['loadUser', 'nap'] },
      {
        path: '/shared-sequence',
        waits: { loadUser: 'TCP:database', nap: 'TIMER', loadRole: 'TCP:database' }
      }
    ]
  },
  {
    name: 'what another request runs delays when the timer is due, not before',
    requests: [{ path: '/delayed' }, { path: '/blocker' }],
    check: (t, outcome) => checkDelayed(t, outcome)
  },
  {
    name: 'a request that its client aborts',
    requests: [{ path: '/abort', client: 'abort', unproven: ['abandonQuery'], end: 'aborted' }]
  },
  {
    name: 'spans inside of a request tell their own waits',
    requests: [{ path: '/spans', waits: { innerStep: 'TCP:database', outerStep: 'TIMER' } }],
    check: (t, outcome) => checkNested(t, outcome)
  },
  {
    name: 'a request that is open when the program ends',
    requests: [{ path: '/open', client: 'leaveOpen', unproven: ['neverAnswer'], end: 'open' }]
  }
]

const expectations = cases.flatMap(({ requests }) => requests)

/** Functions of which a request may name only its own: the table's, and what runs before any request. */
const functions = new Set(['listen', 'start', ...expectations.flatMap(functionsOf)])

/** Lists the functions that a request may wait in. @param {Expectations} expectations */
function functionsOf ({ waits = {}, beside = [], pending = [], unproven = [] }) {
  return [...Object.keys(waits).flatMap(namesOf), ...beside, ...pending, ...unproven]
}

/** Splits alternatives. @param {string} names */
function namesOf (names) {
  return names.split('|')
}

/** Adds up lengths in ms. @param {number[]} [lengths] */
function sum (lengths = []) {
  return lengths.reduce((total, ms) => total + ms, 0)
}

/** Finds the span of a request that the server got. @param {SpanRecord[]} records @param {string} path */
function serverSpan (records, path) {
  const spans = records.filter(({ kind, attributes }) => kind === 'SERVER' && attributes['url.path'] === path)
  if (spans.length !== 1) throw new Error(`${spans.length} spans are of ${path}`)
  return spans[0]
}

/** Formats the times of a span for a message. @param {SpanRecord} record */
function describe (record) {
  return `${record.name} ${JSON.stringify(timesOf(record))}`
}

/** Finds the waits of a span at a function. @param {SpanRecord} record @param {string} names alternatives */
function waitsAt (record, names) {
  const alternatives = namesOf(names)
  return timesOf(record).waits.filter(({ at }) => alternatives.includes(String(parseSite(at)?.functionName)))
}

/** Checks what holds of each span. @param {Context} t @param {SpanRecord} record */
function checkInvariants (t, record) {
  const { duration, run, delayed, waited, bySubsystem, waits } = timesOf(record)
  const text = describe(record)
  if (!Array.isArray(waits)) throw new Error(`no waits: ${text}`)
  const parts = run + delayed + waited
  t.true(Math.abs(parts - duration) <= 0.05 + 3 * ROUNDING, `${parts} ms are all ${duration}: ${text}`)
  const sums = Object.values(bySubsystem)
  const listed = waits.map(({ ms }) => ms)
  for (const ms of [run, delayed, waited, ...sums, ...listed]) t.true(ms >= 0, text)
  const difference = Math.abs(sum(sums) - waited)
  t.true(difference <= 0.05 + ROUNDING * sums.length, `the subsystems add up to ${waited}: ${text}`)
  t.true(sum(listed) <= waited + 0.05 + ROUNDING * listed.length, `no more is listed than waited: ${text}`)
  t.true(listed.length <= MAX_WAITS, text)
  const lost = waits.map(({ ms, delayed: others = 0 }) => ms + others)
  t.true(lost.every((ms, i) => i === 0 || ms <= lost[i - 1] + 2 * ROUNDING), `worst first: ${text}`)
  t.true(waits.every(({ count }) => Number.isInteger(count) && count > 0), text)
  const sites = waits.map(({ ms, count, delayed, on, ...site }) => JSON.stringify(site))
  t.is(new Set(sites).size, sites.length, `equal sites are merged: ${text}`)
  for (const { at, callers = [] } of waits) {
    for (const frame of [at, ...callers]) if (frame !== undefined) checkFile(t, frame)
    t.true(callers.length <= MAX_CALLERS && callers.every((frame, i) => frame !== [at, ...callers][i]), text)
  }
  checkOwnCode(t, record)
  t.false('longstack.idle_ms' in record.attributes || 'longstack.idle_until' in record.attributes)
}

/**
 * Checks that own code on the path and beside it is all that ran, and that no wait was delayed for longer
 * than the span.
 * @param {Context} t
 * @param {SpanRecord} record
 */
function checkOwnCode (t, record) {
  const { 'longstack.ran': ran, 'longstack.beside_ms': beside = 0, 'longstack.waits': waits } = record.attributes
  const { run, delayed, duration } = timesOf(record)
  const text = describe(record)
  const delays = sum(waits.map((/** @type {{ delayed?: number }} */ wait) => wait.delayed ?? 0))
  t.true(delays <= delayed + 0.05 + ROUNDING * waits.length, `delayed for ${delays} ms: ${text}`)
  if (ran === undefined) return t.is(beside, 0, `not the outermost span: ${text}`)
  /** @type {number[]} */
  const listed = ran.map((/** @type {{ ms: number }} */ { ms }) => ms)
  const own = sum(listed) + beside
  t.true(own <= run + 0.05 + ROUNDING * listed.length, `${own} ms of own code are in ${run}: ${text}`)
  const isWhole = listed.length < MAX_WAITS
  const small = MAX_WAITS * duration * MIN_SHARE
  t.true(!isWhole || own >= run - 0.05 - small, `${own} ms are all: ${text}`)
  t.true(listed.every((ms, i) => i === 0 || ms <= listed[i - 1]), `worst first: ${text}`)
  for (const { at } of ran) if (at !== undefined) checkFile(t, at)
}

/** Checks that a site is in the program's own files. @param {Context} t @param {string} at */
function checkFile (t, at) {
  const site = parseSite(at)
  t.true(site !== undefined && site.file.startsWith(`${fixtures}/`), `a frame of the program: ${at}`)
}

/**
 * Checks that a span names no function that is not its own.
 * @param {Context} t
 * @param {SpanRecord} record
 * @param {Set<string>} own
 */
function checkForeign (t, record, own) {
  for (const { at } of timesOf(record).waits) {
    const name = parseSite(at)?.functionName ?? ''
    t.true(own.has(name) || !functions.has(name), `${record.name} does not wait at ${at}`)
  }
}

/**
 * Checks the sites of a span against its program's measure.
 * @param {Context} t
 * @param {SpanRecord} record
 * @param {Expectations} expectations
 * @param {Outcome} outcome
 */
function checkSites (t, record, expectations, { measures, ports }) {
  const { path, waits = {}, beside = [], counts = {}, labels = {}, via = {} } = expectations
  const { run, delayed } = timesOf(record)
  const text = JSON.stringify(record.attributes['longstack.waits'])
  for (const [name, until] of Object.entries(waits)) {
    const entries = waitsAt(record, name)
    const waited = sum(entries.map(({ ms }) => ms))
    const measured = sum(measures[path].waits[namesOf(name)[0]])
    t.true(waited <= measured + TOLERANCE, `${waited} of at most ${measured} ms at ${name}: ${text}`)
    const least = MAIN_PART * (measured - run - delayed) - TOLERANCE
    t.true(waited >= least, `${waited} of ${measured} ms at ${name}: ${describe(record)}`)
    if (entries.length === 0 && least < 0) continue
    t.regex(String(entries[0].until), untilPattern(until, ports), `what ends ${name}: ${text}`)
    t.is(parseSite(entries[0].at)?.via, via[name], text)
    if (name in labels) t.regex(String(entries[0].label), labels[name], text)
    if (name in counts) t.true([counts[name]].flat().includes(entries[0].count), text)
  }
  checkAbsent(t, record, beside)
  checkListed(t, record)
}

/**
 * Checks that a span has no time at functions.
 * @param {Context} t
 * @param {SpanRecord} record
 * @param {string[]} names
 */
function checkAbsent (t, record, names) {
  for (const name of names) {
    const waited = sum(waitsAt(record, name).map(({ ms }) => ms))
    t.true(waited < TOLERANCE, `${name} is not on the path: ${describe(record)}`)
  }
}

/** Checks that the sites listed are nearly all of the time. @param {Context} t @param {SpanRecord} record */
function checkListed (t, record) {
  const { waits, waited } = timesOf(record)
  if (waits.length === MAX_WAITS) return
  const listed = sum(waits.filter(({ at }) => at !== undefined).map(({ ms }) => ms))
  t.true(listed >= waited * 0.9 - TOLERANCE, `${listed} of ${waited} ms have a site: ${describe(record)}`)
}

/** Makes a pattern of what ends a wait. @param {string} until @param {Record<string, number>} ports */
function untilPattern (until, ports) {
  const [subsystems, port] = until.split(':')
  if (until === '') return /./
  if (port === undefined) return RegExp(`^(${subsystems})\\b`)
  return RegExp(`^(${subsystems}) 127\\.0\\.0\\.1:${ports[port]}$`)
}

/**
 * Checks a request as far as any mode tells it.
 * @param {Context} t
 * @param {Expectations} expectations
 * @param {Outcome} outcome
 * @param {Set<string>} own functions of the case's requests
 */
function checkTotals (t, expectations, { records, measures }, own) {
  const { path, waits = {}, pending = [], unproven = [], end } = expectations
  const record = serverSpan(records, path)
  const { run, delayed, waited, duration } = timesOf(record)
  checkInvariants(t, record)
  checkForeign(t, record, own)
  checkAbsent(t, record, pending)
  t.is(record.attributes['longstack.end'], end)
  const names = [...Object.keys(waits), ...unproven].map((name) => namesOf(name)[0])
  const measured = sum(names.flatMap((name) => measures[path].waits[name] ?? []))
  const text = `${waited} of ${measured} ms at ${names}: ${describe(record)}`
  // The program learns of an abort when the span has ended.
  const least = end === 'aborted' ? 0 : measured - run - delayed - TOLERANCE
  t.true(waited >= least, `shorter only by what ran: ${text}`)
  const { idle = 0 } = measures[path]
  t.true(waited >= idle - TOLERANCE, `the loop was idle for ${idle} ms: ${text}`)
  t.true(run >= measures[path].run - TOLERANCE, `it ran for ${measures[path].run} ms: ${describe(record)}`)
  t.true(waited <= duration - measures[path].run + TOLERANCE)
}

/** @param {Context} t @param {Outcome} outcome */
function checkDelayed (t, { records, measures }) {
  const record = serverSpan(records, '/delayed')
  const [from, to] = measures['/delayed'].spells.restDelayed
  const [blockFrom, blockTo] = measures['/blocker'].spells.blockLoop
  const late = Math.min(to, blockTo) - Math.max(from + DUE, blockFrom)
  const { delayed, delayedBy } = timesOf(record)
  const waited = sum(waitsAt(record, 'restDelayed').map(({ ms }) => ms))
  t.true(late > 10, `it was due while the other ran: ${late}`)
  t.true(delayed >= late - TOLERANCE, `${late} ms of the other: ${describe(record)}`)
  t.true(waited <= DUE + 2 * TOLERANCE, `none when it was due: ${describe(record)}`)
  t.true(delayedBy.some(({ name, ms }) => name === 'GET /blocker' && ms >= late - TOLERANCE))
}

/** @param {Context} t @param {Outcome} outcome */
function checkNested (t, outcome) {
  const server = serverSpan(outcome.records, '/spans')
  const outer = outcome.records.filter(({ name }) => name === 'outer')[0]
  const inner = outcome.records.filter(({ name }) => name === 'inner')[0]
  t.is(outer.parentSpanId, server.spanId)
  t.is(inner.parentSpanId, outer.spanId)
  for (const record of [outer, inner]) checkInvariants(t, record)
  const innerStep = 'TCP:database'
  checkSites(t, outer, { path: '/spans', waits: { innerStep, outerStep: 'TIMER' } }, outcome)
  checkSites(t, inner, { path: '/spans', waits: { innerStep }, beside: ['outerStep'] }, outcome)
}

/**
 * Checks the spans of a request made to the other server: the client's is inside of the request that made it,
 * and what serves it has waits of its own.
 * @param {Context} t
 * @param {Outcome} outcome
 * @param {string} path
 * @param {string} upstream path
 * @param {string} name function that waits for it
 */
function checkUpstream (t, outcome, path, upstream, name) {
  const { records, measures } = outcome
  const server = serverSpan(records, path)
  const children = records.filter(({ parentSpanId }) => parentSpanId === server.spanId)
  const spans = children.filter(({ kind }) => kind === 'CLIENT')
  const request = spans.find(({ attributes }) => attributes['url.path'] === upstream)
  if (request === undefined) return t.fail(`no client span of ${path}`)
  for (const record of spans) checkInvariants(t, record)
  const waited = sum(waitsAt(request, name).map(({ ms }) => ms))
  t.true(waited <= sum(measures[path].waits[name]) + TOLERANCE)
  const { run, delayed } = timesOf(request)
  const least = MAIN_PART * (sum(measures[upstream].waits.answerUpstream) - run - delayed) - TOLERANCE
  t.true(waited >= least, describe(request))
  const served = serverSpan(records, upstream)
  checkInvariants(t, served)
  checkSites(t, served, { path: upstream, waits: { answerUpstream: 'TIMER' } }, outcome)
}

/**
 * Defines a test of each case; all share one run of the program, and a further attempt has one of its own.
 * @param {string} mode
 * @param {Record<string, string>} env
 * @param {boolean} sites whether every site is known
 */
function defineTests (mode, env, sites) {
  /** @type {Promise<Outcome> | undefined} */
  let shared
  const all = cases.map(({ requests }) => requests)
  patient(test)(`${mode}: the parts of every span add up`, async (t, attempt) => {
    const { records } = await (attempt === 1 ? shared ??= runServer(all, env) : runServer(all, env))
    t.true(records.length >= expectations.length)
    for (const record of records) checkInvariants(t, record)
  })
  cases.forEach(({ name, requests, continues, check }, i) => {
    patient(test)(`${mode}: ${name}`, async (t, attempt) => {
      const groups = continues ? all.slice(i - 1, i + 1) : [requests]
      const outcome = await (attempt === 1 ? shared ??= runServer(all, env) : runServer(groups, env))
      const own = new Set(requests.flatMap(functionsOf))
      for (const request of requests) {
        checkTotals(t, request, outcome, own)
        if (!sites) continue
        const record = serverSpan(outcome.records, request.path)
        if (request.unproven === undefined) checkSites(t, record, request, outcome)
        checkForeign(t, record, new Set(functionsOf(request)))
      }
      if (sites) check?.(t, outcome)
    })
  })
}

defineTests('full mode', {}, true)
defineTests('the JavaScript engine', { LONGSTACK_CAPTURE: 'js' }, true)

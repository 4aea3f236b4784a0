'use strict'

// longstack top without a process and a terminal: summed figures, the last hour in constant memory, keys and
// lines of the screen.

const test = require('ava')
const { bucketOf } = require('../../../lib/top/buckets')
const { plainText } = require('../../../lib/top/lines')
const { History, Interval, Model } = require('../../../lib/top/model')
const { Screen } = require('../../../lib/top/screen')
const { columnsOf } = require('../../../report/render/wrap')
const { clean } = require('../../../lib/text')

/** @param {number[]} durations ms */
function route (name, durations, { errors = 0, lost = 0 } = {}) {
  const buckets = durations.flatMap((ms) => [bucketOf(ms * 1000), 1])
  const sumUs = durations.reduce((sum, ms) => sum + ms * 1000, 0)
  const maxUs = Math.max(0, ...durations) * 1000
  return { name, count: durations.length, errors, lost, sumUs, maxUs, buckets }
}

/** The answer of a thread. @param {any} [parts] */
function answer ({ pid = 1, threadId = 0, maxMs = 1, silentMs = 0, groups = [], ...others } = {}) {
  const handles = { count: groups.length, groups }
  const thread = {
    loop: { share: 0.5, p50Ms: 0, p99Ms: maxMs, maxMs },
    cpuMs: 250,
    process: threadId === 0 ? { cpuMs: 500, rss: 1e8 } : undefined,
    heap: { used: 5e7, external: 0 }
  }
  const figures = {
    ms: 1000,
    enabled: true,
    routes: [],
    inFlight: 0,
    oldest: undefined,
    thread,
    blockers: [],
    handles,
    waitsFor: { cycles: [], convoys: [] }
  }
  const facts = { pid, threadId, name: '/app/server.js', node: 'v24.0.0', blockedMs: undefined, handles }
  return { key: `${pid} ${threadId}`, facts, figures: silentMs > 0 ? undefined : { ...figures, ...others }, silentMs }
}

test('an hour takes constant memory: old figures are merged, and sums are kept', (t) => {
  const history = new History()
  for (let i = 0; i < 20_000; i++) {
    const interval = new Interval()
    interval.ms = 1000
    for (let j = 0; j < 8; j++) {
      const { name, ...counts } = route(`GET /${(i * 8 + j) % 1000}`, [1])
      interval.add(name, counts)
    }
    history.add(interval)
    if (i === 3599) {
      t.is(history.sum(3_600_000).total.count, 3600 * 8, 'all of an hour')
      t.is(history.sum(3_600_000).ms, 3_600_000)
    }
  }
  const intervals = history.list()
  t.true(intervals.length <= 3 * 70, String(intervals.length))
  t.true(intervals.every(({ routes }) => routes.size <= 300))
  t.true(intervals.slice(140).every(({ routes }) => routes.size <= 50))
  const sum = history.sum(3_600_000)
  t.true(sum.ms >= 3_600_000 && sum.ms < 3_800_000)
  t.is(sum.total.count, sum.ms / 1000 * 8)
  t.is([...sum.routes.values()].reduce((total, { count }) => total + count, 0), sum.total.count)
  t.is(history.steps(60_000, 60).length, 60)
  t.is(history.sum(2000).total.count, 16)
})

test('threads and processes are merged: counts and histograms are added, the worst delay is named', (t) => {
  const model = new Model()
  const slow = Array(50).fill(100)
  const fast = Array(150).fill(1)
  model.add([
    answer({ pid: 10, routes: [route('GET /', fast, { errors: 2 })], inFlight: 1, oldest: { ms: 5, name: 'GET /' } }),
    answer({ pid: 10, threadId: 3, routes: [route('GET /', slow)], maxMs: 90, inFlight: 2, oldest: { ms: 900, name: 'GET /slow' } }),
    answer({ pid: 11, routes: [route('GET /b', [5], { lost: 1 })] })
  ], 1e12)
  const frame = model.frame(2000)
  t.is(frame.total.count, 201)
  t.is(frame.total.perSecond, 201)
  const [first] = frame.routes
  t.deepEqual([first.name, first.count, first.errors], ['GET /', 200, 2])
  t.true(Math.abs(first.p50Ms - 1) < 0.07 && Math.abs(first.p99Ms - 100) < 7, JSON.stringify(first))
  t.is(first.meanMs, (150 + 5000) / 200)
  t.deepEqual([frame.inFlight, frame.oldest?.name], [3, 'GET /slow'])
  const text = plainText(frame, { width: 100, name: '10', choice: { sort: 1, filter: '' } })
  t.regex(text, /2 processes, 3 threads/)
  t.regex(text, /delay p99 90\.0 ms max 90\.0 ms \(10 thread 3\)/)
  t.regex(text, /^GET \/ +200 /m)
  t.regex(text, /CPU 100 %/)
})

test('a thread that does not respond is marked, and its requests are not counted again', (t) => {
  const model = new Model()
  model.add([answer({ routes: [route('GET /', [1, 1])], inFlight: 4 })], 1e12)
  model.add([answer({ silentMs: 3000 })], 1e12 + 1000)
  const frame = model.frame(60_000)
  t.is(frame.total.count, 2)
  t.is(frame.inFlight, 4)
  t.is(frame.threads[0].perSecond, 0)
  const screen = new Screen(model, { name: '1' })
  screen.press('c', { name: 'c' })
  t.regex(screen.lines({ columns: 100, rows: 24 }).join('\n'), /silent 3\.00 s/)
})

test('growth of handles is per minute since the first sample', (t) => {
  const model = new Model()
  const group = (/** @type {number} */ count) => [{ chain: 5, noun: 'timer', site: 'leak (/app/a.js:1:2)', count }]
  const started = answer({ groups: group(10) })
  model.add([{ ...started, figures: undefined }], 1e12)
  t.is(model.frame(1).handles[0].perMinute, undefined)
  for (let i = 1; i <= 200; i++) model.add([answer({ groups: group(10 + 2 * i) })], 1e12 + i * 1000)
  t.is(Math.round(Number(model.frame(1).handles[0].perMinute)), 120)
  const grown = [...group(410), { chain: 6, noun: 'timer', site: 'new (/app/b.js:1:2)', count: 3 }]
  model.add([answer({ groups: grown })], 2e12)
  t.is(Math.round(Number(model.frame(1).handles[1].perMinute)), 180)
})

test('growth is known with the first figures, even if they are the first timely response', (t) => {
  const model = new Model()
  const first = answer({ groups: [{ chain: 5, noun: 'timer', site: 'leak (/app/a.js:1:2)', count: 40 }] })
  const { handles } = answer({ groups: [{ chain: 5, noun: 'timer', site: 'leak (/app/a.js:1:2)', count: 30 }] }).facts
  model.add([{ ...first, facts: { ...first.facts, handles } }], 1e12)
  t.is(Math.round(Number(model.frame(1).handles[0].perMinute)), 600)
})

test('growth of handles from older counts uses their age, and needs all of them', (t) => {
  const model = new Model()
  const group = (/** @type {number} */ count) => ({ chain: 0, noun: 'timer', site: 'leak (/app/a.js:1:2)', count })
  const late = (/** @type {any[]} */ groups, /** @type {number} */ count, /** @type {number} */ agoMs) => {
    const { facts, figures, ...others } = answer()
    const handles = { count, groups, agoMs }
    return { ...others, facts: { ...facts, handles }, figures: { ...figures, handles } }
  }
  model.add([{ ...late([], NaN, NaN), figures: undefined }], 1e12)
  const text = plainText(model.frame(1), { width: 100, name: '1', choice: { sort: 1, filter: '' } })
  t.regex(text, /Handles: Open handles are not counted yet\./)
  model.add([late([group(10)], 10, 600)], 1e12)
  t.is(model.frame(1).handles[0].perMinute, undefined)
  model.add([late([group(10)], 10, 1600)], 1e12)
  t.is(model.frame(1).handles[0].perMinute, undefined, 'the same count')
  const few = { ...group(9), noun: 'file' }
  model.add([late([group(30)], 39, 600)], 1e12)
  t.is(model.frame(1).handles[0].perMinute, 600, '20 more in 2 s')
  model.add([late([group(30), few], 39, 600)], 1e12)
  t.is(model.frame(1).handles[1].perMinute, undefined, 'it was there before, among those of few')
})

test('a stuck process of a black box is the first line; figures that the box lacks are omitted', (t) => {
  const model = new Model()
  const { facts, figures, ...others } = answer({ maxMs: NaN })
  const stuck = { ms: 12_300, inside: 'forEver (/app/spin.js:2:3)', request: 'GET /spin' }
  const loop = { share: NaN, p50Ms: NaN, p99Ms: NaN, maxMs: NaN }
  const thread = { ...figures?.thread, loop, heap: { used: NaN, limit: NaN } }
  const known = { facts: { ...facts, box: '/boxes/longstack-1.box', stuck }, figures: { ...figures, thread } }
  model.add([{ ...others, ...known, silentMs: 12_300 }], 1e12)
  const screen = new Screen(model, { name: '1' })
  const lines = screen.lines({ columns: 80, rows: 24 })
  t.regex(lines[0], /^longstack top 1 · [\d:]+ · black box \(or --ask\)$/)
  t.is(lines[1], 'CPU 50 %  loop busy -  RSS 100 MB  heap -')
  t.is(lines[3], '1 has been stuck for 12.3 s in forEver (spin.js:2) for GET /spin')
  screen.press('c', { name: 'c' })
  t.regex(screen.lines({ columns: 80, rows: 24 }).join('\n'), / stuck 12\.3 s\n/)
  screen.press('b', { name: 'b' })
  t.regex(screen.lines({ columns: 80, rows: 24 }).join('\n'), /\nNot in a black box: --blocked 50 asks /)
  const { blockers, boxes, waitsFor } = model.frame(1000)
  t.deepEqual({ blockers, boxes, waitsFor }, { blockers: undefined, boxes: ['/boxes/longstack-1.box'], waitsFor: undefined })
})

/** A screen of some routes, handles and blockers. */
function createScreen () {
  const model = new Model()
  const stack = '    at parse (/app/parse.js:1:2)\n  ── setTimeout(1) · Timeout ──'
  model.add([answer({
    routes: [route('GET /a', [1, 1, 1]), route('GET /b', [50]), route('POST /c\u001b[31m\u202e', [2, 2])],
    groups: [{ chain: 5, noun: 'timer', site: 'leak (/app/a.js:1:2)', count: 3 }],
    blockers: [{ site: 'parse (/app/parse.js:1:2)', count: 1, ms: 60, worstMs: 60, stack }]
  })], 1e12)
  const screen = new Screen(model, { name: '1' })
  const size = { columns: 80, rows: 23 }
  return {
    model,
    /** @param {string | undefined} text @param {string} [name] */
    press: (text, name = text) => screen.press(text, { name }),
    text: () => screen.lines(size).join('\n'),
    /** The first words of the rows. */
    rows: () => screen.lines(size).slice(6).filter((line) => /^[› ] [A-Z]/.test(line)).map((line) => line.slice(2, 10).trim()),
    screen
  }
}

test('keys sort, filter, choose a pane and a row, pause and quit', (t) => {
  const { press, text, rows, model } = createScreen()
  t.deepEqual(rows(), ['GET /a', 'POST /c?', 'GET /b'], 'by rate')
  press('4')
  t.deepEqual(rows(), ['GET /b', 'POST /c?', 'GET /a'], 'by p99')
  press(undefined, 'left')
  press('9')
  press(undefined, 'left')
  press(undefined, 'left')
  t.deepEqual(rows(), ['GET /a', 'GET /b', 'POST /c?'], 'by name')
  t.regex(text(), /^› GET \/a/m)
  press(undefined, 'down')
  t.regex(text(), /^› GET \/b/m)
  press('2')
  t.regex(text(), /^› GET \/b/m, 'the row stays selected')
  for (const letter of '/post') press(letter)
  t.deepEqual(rows(), ['POST /c?'])
  t.regex(text(), /\/post_/)
  press('q')
  t.regex(text(), /Nothing matches "postq"/)
  press(undefined, 'backspace')
  press('\r', 'return')
  t.regex(text(), /filter "post"/)
  press('\u001b', 'escape')
  t.is(rows().length, 3)
  press('\t', 'tab')
  t.regex(text(), /\[Waits\]/)
  press('h')
  t.regex(text(), /\[Handles 1\]/)
  t.deepEqual(press('w'), { ask: { place: { key: '1 0', chain: 5 } } })
  press('b')
  const ask = /** @type {any} */ (press('\r', 'return'))
  t.regex(ask.ask.stack, /at parse/)
  press('p')
  t.regex(text(), /paused/)
  model.add([answer({ routes: [route('GET /late', [1])] })], 1e12)
  press('r')
  t.false(text().includes('/late'))
  press(' ')
  t.regex(text(), /GET \/late/)
  t.deepEqual(press('q'), { quit: true })
})

test('Ctrl-C quits also while a filter is typed or a text is shown', (t) => {
  const { press, screen } = createScreen()
  press('/')
  t.deepEqual(screen.press('\u0003', { name: 'c', ctrl: true }), { quit: true })
  press('\u001b', 'escape')
  press('?')
  t.deepEqual(screen.press('\u0003', { name: 'c', ctrl: true }), { quit: true })
})

test('a response replaces the table, without control characters, and can be scrolled', (t) => {
  const { press, text, screen } = createScreen()
  screen.show(Array.from({ length: 100 }, (_, i) => `line ${i} \u001b[2J`).join('\n'))
  t.regex(text(), /line 0 \?\[2J/)
  press(undefined, 'pagedown')
  t.false(text().includes('line 0 '))
  t.regex(text(), /line 10 /)
  for (let i = 0; i < 50; i++) press(undefined, 'pagedown')
  t.regex(text(), /line 99 /)
  press('\u001b', 'escape')
  t.regex(text(), /GET \/a/)
})

test('a screen of any size has lines that fit, and no control characters', (t) => {
  const { press, screen } = createScreen()
  for (const pane of ['r', 'a', 'h', 'b', 'c']) {
    press(pane)
    for (const columns of [20, 40, 80, 200]) {
      for (const rows of [1, 4, 9, 23, 60]) {
        const lines = screen.lines({ columns, rows })
        t.is(lines.length, rows)
        for (const line of lines) {
          if (columnsOf(line) > columns || clean(line) !== line) t.fail(`${columns}x${rows}: ${JSON.stringify(line)}`)
        }
      }
    }
  }
})

test('wide characters take two columns', (t) => {
  const model = new Model()
  model.add([answer({ routes: [route('GET /日本語日本語日本語日本語日本語日本語日本語', [1]), route('GET /a', [1])] })], 1e12)
  const lines = new Screen(model, { name: '1' }).lines({ columns: 60, rows: 23 })
  const rows = lines.filter((line) => line.includes('1.00 '))
  t.true(rows.length >= 2)
  t.is(new Set(rows.slice(-2).map(columnsOf)).size, 1, rows.join('\n'))
})

test('blocked and blocking requests: one line on the screen, or all of them in a view', (t) => {
  const at = 'acquire (/app/lock.js:5:1)'
  const member = { request: 'GET /a', count: 2, took: 'a (/app/a.js:1:1)', at, caller: 'a (/app/a.js:2:1)', oldestMs: 4200 }
  const cycle = { by: 'promise', seen: 0, members: [member], behind: 1 }
  const holder = { request: 'GET /slow', count: 1, took: undefined, at: 'slow (/app/slow.js:3:1)', uses: 'TCP 127.0.0.1:5432', heldMs: 4200 }
  const convoy = { by: 'name', seen: 0, requests: [{ request: 'GET /x', count: 23 }], count: 23, at, caller: undefined, oldestMs: 4100, for: holder }
  const model = new Model()
  model.add([answer({ waitsFor: { cycles: [cycle], convoys: [convoy] } })], 0)
  const sentences = [
    'deadlock: 2 × GET /a hold what each took at a (a.js:1) and wait at a (a.js:2), in acquire (lock.js:5), for what only they can release; for 4.2 s; 1 more request waits behind',
    '23 × GET /x wait at acquire (lock.js:5), the oldest for 4.1 s, for GET /slow, which holds it for 4.2 s and waits for TCP 127.0.0.1:5432 at slow (slow.js:3)'
  ]
  const text = plainText(model.frame(2000), { width: 100, name: 'app.js', choice: { sort: 1, filter: '' } })
  t.deepEqual(text.split('\n').slice(3, 5), sentences)
  const screen = new Screen(model, { name: 'app.js' }).lines({ columns: 80, rows: 24 })
  t.is(screen[3], `${sentences[0].slice(0, 79)}…`)
})

'use strict'

// trace.span and trace.on('span'): the program's view is unchanged, and every span describes the work inside
// it.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { program } = require('../helpers/run')
const { told, head, sound } = require('../helpers/spans')
const { same } = require('../helpers/both')
const { patient } = require('../helpers/starved')
const { recordsOf } = require('../helpers/records')

/** @param {import('ava').ExecutionContext} t */
function file (t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-spans-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  return path.join(folder, 'spans.jsonl')
}

/** @param {string} name @returns {any[]} */
const lines = (name) => recordsOf(fs.readFileSync(name, 'utf8'))

patient(test)('what the function returns, throws and resolves to is what the caller gets', async (t) => {
  const { records, seen, span } = await told(`
    const seen = []
    const note = (what) => { seen.push(String(what)) }
    ;(async () => {
      const object = {}
      note(trace.span('value', () => object) === object)
      note(trace.span('nothing', () => {}))
      try { trace.span('throws', () => { throw new TypeError('bad') }) } catch (error) { note(error) }
      try { trace.span('throws nothing', () => { throw undefined }) } catch (error) { note(error) }
      const promise = trace.span('resolves', async () => { await wait(2); return 'late' })
      note(promise instanceof Promise)
      note(await promise)
      await trace.span('rejects', async () => { await wait(2); throw new RangeError('late') }).catch(note)
      note(await trace.span('thenable', () => ({ then (resolve) { setTimeout(resolve, 150, 'from then') } })))
      await trace.span('thenable throws', () => ({ then () { throw new Error('from then') } })).catch(note)
      note(typeof trace.span('getter throws', () => ({ get then () { throw new Error('never seen') } })))
      note([...trace.span('generator', function * () { yield 1; yield 2 })])
      const iterator = trace.span('async generator', async function * () { yield 3; yield 4 })
      for await (const value of iterator) note(value)
      note(await Promise.all([3, 2, 1].map((n) => trace.span('parallel ' + n, async () => { await wait(n); return n }))))
      note(trace.span('this and arguments', function (...all) { return this === undefined && all.length }))
      tell({ seen })
    })()`)
  t.deepEqual(seen, ['true', 'undefined', 'TypeError: bad', 'undefined', 'true', 'late', 'RangeError: late', 'from then', 'Error: from then',
    'object', '1,2', '3', '4', '3,2,1', '1'])
  for (const record of records) sound(t, record)
  const status = (/** @type {string} */ name) => [span(name).status.code, span(name).status.message]
  t.deepEqual(status('value'), ['UNSET', undefined])
  t.deepEqual(status('throws'), ['ERROR', 'bad'])
  t.deepEqual(status('throws nothing'), ['ERROR', 'undefined'])
  t.deepEqual(status('rejects'), ['ERROR', 'late'])
  t.deepEqual(status('thenable'), ['UNSET', undefined])
  t.deepEqual(status('thenable throws'), ['ERROR', 'from then'])
  t.deepEqual(span('rejects').events.map((/** @type {any} */ { name, attributes }) => [name, attributes['exception.type'], attributes['exception.message']]),
    [['exception', 'RangeError', 'late']])
  t.is(span('rejects').attributes['error.type'], 'RangeError')
  t.true(span('thenable').attributes['longstack.waited_ms'] + span('thenable').attributes['longstack.delayed_ms'] > 10, 'the span is open until it settles, and what it begins is its own')
  t.is(span('thenable').attributes['longstack.wait_ms'].TIMER > 5, true)
})

test('an error has its long stack, and the span the place of its creation', async (t) => {
  const { span } = await told(`
    function openAccount () { return trace.span('open', async () => { await wait(1); return readBalance() }) }
    async function readBalance () { await wait(1); throw new Error('no balance') }
    setTimeout(function start () { openAccount().catch(() => tell()) }, 1)`)
  const { events, attributes } = span('open')
  t.regex(events[0].attributes['exception.stacktrace'], /^Error: no balance\n {4}at readBalance /)
  // Where a promise was rejected is known with the native engine only.
  if (process.env.ENGINE !== 'js') t.regex(events[0].attributes['exception.stacktrace'], /── trace\.span\(open\) · /)
  t.regex(events[0].attributes['exception.stacktrace'], /── setTimeout\(1\) · /)
  t.regex(attributes['code.stacktrace'], /^ {4}at openAccount .*\n {4}at (Timeout\.)?start/m)
  t.notRegex(attributes['code.stacktrace'], /lib\/spans/)
})

test('the handle has ids, attributes and fail(), which do nothing after the span\'s end', async (t) => {
  const { span, seen } = await told(`
    let kept
    const seen = trace.span('one', { given: 1, 'longstack.run_ms': 'mine' }, (handle) => {
      kept = handle
      handle.set({ more: [1, { deep: true }] }).set({ given: 2 })
      return { ...handle, frozen: Object.isFrozen(handle), keys: Object.keys(handle) }
    })
    kept.set({ late: true }).fail(new Error('late'))
    trace.span('failed', (handle) => { handle.fail(new Error('by hand')); return 1 })
    tell({ seen })`)
  const { traceId, spanId, attributes, status } = span('one')
  t.is(seen.traceId, traceId)
  t.is(seen.spanId, spanId)
  t.is(seen.traceparent, `00-${traceId}-${spanId}-01`)
  t.true(seen.frozen)
  t.deepEqual([attributes.given, attributes.more, attributes.late], [2, [1, { deep: true }], undefined])
  t.is(typeof attributes['longstack.run_ms'], 'number')
  t.is(status.code, 'UNSET')
  t.deepEqual(span('failed').status, { code: 'ERROR', message: 'by hand' })
})

test('an unhandled rejection is reported as before', async (t) => {
  const source = (/** @type {string} */ begin) => `
    const trace = { span: (name, fn) => fn() }
    ${begin}
    process.on('unhandledRejection', (reason, promise) => console.log('unhandled', reason.message, promise === made))
    process.on('rejectionHandled', (promise) => console.log('handled', promise === made))
    const made = trace.span('x', async () => { await null; throw new Error('nobody') })
    setTimeout(() => made.catch(() => console.log('caught')), 20)`
  const bare = await program(source(''), { preload: false })
  const traced = await program(source(`Object.assign(trace, { span: require(${JSON.stringify(require.resolve('../..'))}).span })`), { env: { LONGSTACK_SPANS: file(t) } })
  t.is(bare.stdout, 'unhandled nobody true\ncaught\nhandled true\n')
  t.deepEqual(traced, bare)
})

test('attributes of any kind: listeners get the original values, a file the JSON ones', async (t) => {
  const name = file(t)
  const { stdout, stderr, code } = await program(`${head}
    const cycle = {}; cycle.self = cycle
    const odd = { fn () {}, big: 10n, cycle, symbol: Symbol('s'), date: new Date(0), map: new Map([[1, 2]]), nan: NaN, text: 'a\\u0007b\\ud800', __proto__: null }
    trace.on('span', ({ name, attributes }) => {
      if (name.startsWith('odd')) console.log(['fn', 'big', 'cycle', 'symbol', 'date', 'map'].every((key) => attributes[key] === odd[key]))
    })
    trace.span('odd \\u0007\\n\\u202e', odd, () => {})
    try { trace.span('never', { get x () { throw new Error('getter') } }, () => console.log('ran')) } catch (error) { console.log(error.message) }
    trace.span('proto', JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'), () => {})
    console.log(trace.stats().spans.open, ({}).x)`, { env: { LONGSTACK_SPANS: name } })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(stdout, 'true\ngetter\n0 undefined\n')
  const written = lines(name)
  t.deepEqual(written.map((record) => record.name), ['odd \u0007\n\u202e', 'proto'])
  t.is(written[0].attributes.nan, null)
  t.is(written[1].attributes.constructor, 2)
})

test('wrong arguments are errors with a code', async (t) => {
  const { codes } = await told(`
    const tries = [() => trace.span(), () => trace.span('', () => {}), () => trace.span(1, () => {}), () => trace.span('x'), () => trace.span('x', {}),
      () => trace.span('x', null, () => {}), () => trace.span('x', 'y', () => {}), () => trace.span('x', {}, 5), () => trace.on('spans', () => {}), () => trace.on('span', 1),
      () => trace.enable({ spans: 7 }), () => trace.enable({ spans: '' }), () => trace.enable({ spans: 'x;slowr=5' }), () => trace.enable({ span: 'x' })]
    tell({ codes: tries.map((attempt) => { try { attempt(); return 'none' } catch (error) { return error.code + (error instanceof TypeError ? '' : ' no TypeError') } }) })`)
  t.deepEqual(codes.slice(0, 8), Array(8).fill('LONGSTACK_ERR_INVALID_SPAN'))
  t.deepEqual(codes.slice(8, 10), ['LONGSTACK_ERR_UNKNOWN_EVENT', 'LONGSTACK_ERR_INVALID_HANDLER'])
  t.true(codes.slice(10).every((/** @type {string} */ code) => /^LONGSTACK_ERR_/.test(code) && !code.includes(' ')), codes.join())
})

test('without spans, the function just runs, with a handle that does nothing', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    console.log(trace.span('x', (handle) => [handle.traceId, handle.spanId, handle.traceparent, handle.set({}) === handle, handle.fail(1) === handle].join('|')))
    console.log(trace.stats().spans)
    try { trace.span('x', () => { throw new Error('same') }) } catch (error) { console.log(error.message) }
    trace.disable()
    const off = trace.on('span', () => console.log('never'))
    trace.span('y', () => {})
    trace.enable(); off(); trace.span('z', () => {})`)
  t.is(stdout, '|||true|true\nundefined\nsame\n')
})

test('work of listeners and hooks makes no spans, now or later', async (t) => {
  const { records } = await told(`
    const http = require('node:http')
    let turns = 0
    async function again () {
      if (++turns > 200) { process.exitCode = 9; process.exit() }
      trace.span('at once', () => {})
      setTimeout(() => trace.span('in a timer', () => {}), 1)
      http.get('http://127.0.0.1:1').on('error', () => {})
      fetch('http://127.0.0.1:1').catch(() => {})
      await null
      trace.span('after an await', () => {})
      await wait(2)
      trace.span('after a wait', () => {})
      queueMicrotask(() => trace.span('in a microtask', () => {}))
    }
    trace.on('span', again)
    const remove = trace.hook({ init () { trace.span('in a hook', () => {}) } })
    trace.span('first', () => {})
    setTimeout(() => { remove(); trace.span('second', () => {}); setTimeout(tell, 60) }, 30)`)
  t.deepEqual(records.map((/** @type {any} */ { name }) => name), ['first', 'second'])
})

test('parents are found across everything that carries context', async (t) => {
  const { records, span } = await told(`
    const { EventEmitter, once } = require('node:events')
    ;(async () => {
      await Promise.all(['a', 'b'].map((id) => trace.span(id, async () => {
        await null
        trace.span(id + ' await', () => {})
        await new Promise((resolve) => setTimeout(resolve, 2)); trace.span(id + ' timer', () => {})
        await new Promise((resolve) => process.nextTick(resolve)); trace.span(id + ' tick', () => {})
        await require('node:fs').promises.stat('/'); trace.span(id + ' fs', () => {})
        const emitter = new EventEmitter(); setImmediate(() => emitter.emit('x')); await once(emitter, 'x'); trace.span(id + ' event', () => {})
        await Promise.race([wait(1), wait(50)]); trace.span(id + ' race', () => {})
        for await (const x of (async function * () { await wait(1); yield 1 })()) trace.span(id + ' iterator', () => {})
        await trace.span(id + ' inner', async () => { await wait(1); trace.span(id + ' innermost', () => {}) })
        trace.span(id + ' after inner', () => {})
        await new Promise((resolve) => queueMicrotask(() => { trace.span(id + ' microtask', () => {}); resolve() }))
        trace.bind(() => trace.span(id + ' bound', () => {}))()
      })))
      trace.span('after all', () => {})
      tell()
    })()`)
  t.is(span('after all').parentSpanId, undefined)
  for (const id of ['a', 'b']) {
    for (const { name, parentSpanId, traceId } of records.filter((/** @type {any} */ { name }) => name.startsWith(`${id} `))) {
      t.is(parentSpanId, span(name === `${id} innermost` ? `${id} inner` : id).spanId, name)
      t.is(traceId, span(id).traceId)
    }
  }
})

test('disable ends spans as open, enable starts anew; outputs can be replaced', async (t) => {
  const [first, second] = [file(t), file(t)]
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    ;(async () => {
      const left = trace.span('left open', () => wait(30))
      trace.span('one', () => {})
      trace.disable()
      trace.span('off', () => {})
      console.log(trace.stats().spans.open)
      trace.enable({ spans: ${JSON.stringify(second)} })
      trace.span('two', () => {})
      await left
      trace.span('three', () => {})
      const { open, ended, written, dropped } = trace.stats().spans
      console.log(JSON.stringify({ open, ended, written, dropped }))
    })()`, { env: { LONGSTACK_SPANS: first } })
  t.is(stderr, '')
  t.is(stdout, '0\n{"open":0,"ended":4,"written":2,"dropped":0}\n')
  t.deepEqual(lines(first).map(({ name, attributes }) => [name, attributes['longstack.end']]), [['one', undefined], ['left open', 'open']])
  t.deepEqual(lines(second).map(({ name }) => name), ['two', 'three'])
})

const ends = {
  'the program ends by itself': ["trace.span('open', () => new Promise(() => {}))", 0],
  'process.exit': ["trace.span('open', async () => { await wait(5); process.exit(3) })", 3],
  'process.exit in a listener of exit': ["process.on('exit', () => process.exit(4)); trace.span('open', () => new Promise(() => {}))", 4],
  'an error that nobody catches': ["trace.span('open', async () => { setTimeout(() => { throw new Error('nobody') }, 5); await wait(50) })", 1],
  'a rejection that nobody handles': ["trace.span('open', async () => { wait(5).then(() => { throw new Error('nobody') }); await wait(50) })", 1]
}

for (const [name, [source, expected]] of Object.entries(ends)) {
  test(`${name}: open spans are written as open`, async (t) => {
    const to = file(t)
    const { code, stdout } = await program(`
      const trace = require(${JSON.stringify(require.resolve('../..'))})
      const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
      ${source}`, { env: { LONGSTACK_SPANS: to } })
    t.is(code, expected)
    t.is(stdout, '')
    const [open, ...others] = lines(to)
    t.deepEqual(others, [])
    t.is(open.attributes['longstack.end'], 'open')
    sound(t, open)
    if (!/nobody/.test(name)) return t.is(open.status.code, 'UNSET')
    t.deepEqual(open.status, { code: 'ERROR', message: 'nobody' })
    t.is(open.events.length, 1)
    t.regex(open.events[0].attributes['exception.stacktrace'], /^Error: nobody\n[\s\S]*── /)
  })
}

test('a tree stays in order and durations exact if the wall clock is changed or time is faked', async (t) => {
  const { records, span, times } = await told(`
    const real = Date.now
    ;(async () => {
      await trace.span('outer', async () => {
        await trace.span('before', () => wait(5))
        Date.now = () => real() - 3_600_000
        globalThis.Date = class extends Date { constructor () { super(0) } static now () { return 0 } }
        Object.defineProperty(globalThis, 'performance', { value: { now: () => 1e9, timeOrigin: 0 }, configurable: true })
        await trace.span('faked', () => new Promise((resolve) => setTimeout(resolve, 30)))
      })
      await trace.span('after', () => new Promise((resolve) => setTimeout(resolve, 30)))
      tell({ now: real() })
    })()`)
  for (const record of records) sound(t, record)
  const [outer, before, faked, after] = ['outer', 'before', 'faked', 'after'].map(span)
  const ns = (/** @type {string} */ text) => BigInt(text)
  t.true(ns(outer.startTimeUnixNano) <= ns(before.startTimeUnixNano))
  t.true(ns(before.endTimeUnixNano) <= ns(faked.startTimeUnixNano))
  t.true(ns(faked.endTimeUnixNano) <= ns(outer.endTimeUnixNano))
  t.true(ns(outer.endTimeUnixNano) <= ns(after.startTimeUnixNano))
  t.true(times('faked').duration >= 29 && times('faked').duration < 5_000)
  for (const { startTimeUnixNano } of records) t.true(Math.abs(Number(BigInt(startTimeUnixNano) / 1_000_000n) - Date.now()) < 60_000, 'the real time')
})

// A small stack overflows in the same places, and sooner: with the JavaScript engine a whole one takes many
// seconds.
const smallStack = ['--stack-size=300']

test('a stack overflow through spans is an ordinary error, and leaves nothing behind', async (t) => {
  const { stdout, stderr, code } = await program(`${head}
    let caught = 0
    const nested = () => trace.span('nested', () => nested())
    const beside = () => { trace.span('beside', () => {}); beside() }
    for (let i = 0; i < 10; i++) for (const down of [nested, beside]) { try { down() } catch (error) { if (error instanceof RangeError) caught++ } }
    setTimeout(() => {
      trace.span('after', () => busy(5))
      const stats = trace.stats() // listeners have what has ended
      const { attributes, parentSpanId } = records.at(-1)
      console.log(caught, stats.spans.open, attributes['longstack.run_ms'] >= 4.9, parentSpanId, stats.fault)
    }, 5)`, { args: smallStack })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(stdout, '20 0 true undefined undefined\n')
})

test('a seeded program gets the same random numbers', async (t) => {
  await same(t, `
    const trace = process.env.LONGSTACK_SPANS && process.execArgv.includes('-r') ? require(${JSON.stringify(require.resolve('../..'))}) : { span: (name, fn) => fn() }
    for (let i = 0; i < 5; i++) trace.span('x', () => console.log(Math.random()))
    require('node:http').createServer((request, response) => response.end()).listen(0, function () {
      require('node:http').get({ port: this.address().port }, (response) => response.resume().on('end', () => { console.log(Math.random()); this.close() }))
    })`, { args: ['--random-seed=42'], env: { LONGSTACK_SPANS: file(t) } })
})

patient(test)('hooks are told how long a resource waited and ran', async (t) => {
  const { events } = await told(`
    const { AsyncResource } = require('node:async_hooks')
    const events = []
    const early = setTimeout(() => {}, 30)
    const note = (stage) => (context) => { if (/^(Timeout|job)$/.test(context.type)) events.push([context.type, stage, context.waitMs, context.runMs]) }
    const remove = trace.hook({ init: note('init'), before: note('before'), after: note('after') })
    const late = setTimeout(() => {
      busy(20)
      const job = new AsyncResource('job')
      busy(15)
      job.runInAsyncScope(() => { busy(10); job.runInAsyncScope(() => busy(5)); busy(10) })
      busy(12)
      job.runInAsyncScope(() => {})
    }, 60)
    setTimeout(() => { remove(); tell({ events }) }, 200)`)
  const timeouts = events.filter((/** @type {any[]} */ [type]) => type === 'Timeout')
  const [init, , unknownBefore, unknownAfter] = timeouts
  t.deepEqual(init, ['Timeout', 'init', null, null])
  t.deepEqual([unknownBefore[1], unknownBefore[2]], ['before', null], 'it was made before anybody listened')
  t.true(unknownAfter[1] === 'after' && unknownAfter[3] >= 0)
  const [before, after] = timeouts.slice(4)
  t.true(before[2] >= 58 && before[3] === null, JSON.stringify(before))
  t.true(after[2] === before[2] && after[3] >= 61.9, JSON.stringify(after))
  const [made, first, inner, innerAfter, firstAfter, second, secondAfter] = events.filter((/** @type {any[]} */ [type]) => type === 'job').map((/** @type {any[]} */ event) => event.slice(1))
  t.deepEqual(made, ['init', null, null])
  t.true(first[0] === 'before' && first[1] >= 14.9)
  t.true(inner[0] === 'before' && inner[1] === 0, 'it does not wait while it runs')
  t.true(innerAfter[0] === 'after' && innerAfter[2] >= 4.9)
  t.true(firstAfter[0] === 'after' && firstAfter[2] >= 24.9 && firstAfter[2] >= innerAfter[2] + 19.9)
  t.true(second[0] === 'before' && second[1] >= 11.9)
  t.true(secondAfter[0] === 'after' && secondAfter[2] < firstAfter[2])
})

// What a program shows of itself is the same with spans to a file.
const programs = {
  'objects, errors and keys': `
    const util = require('node:util'), net = require('node:net')
    setTimeout(() => {
      const show = (value) => console.log(util.inspect(value, { showHidden: true, breakLength: Infinity }).replace(/,?\\s*\\[?Symbol\\((trigger_)?async_id_symbol\\)\\]?: \\d+/g, ''))
      show(Promise.resolve(1))
      const socket = new net.Socket(); console.log(Reflect.ownKeys(socket).map(String).join()); socket.destroy()
      console.log(Object.getOwnPropertyNames(globalThis).length, Object.keys(process).length)
    }, 2)`,
  'the order of events': `
    const log = []
    const say = (word) => log.push(word)
    process.nextTick(() => { say('tick 1'); process.nextTick(() => say('tick 2')) })
    queueMicrotask(() => { say('micro 1'); process.nextTick(() => say('tick 3')) })
    ;(async () => { await null; say('await 1'); await null; say('await 2') })()
    new Promise((resolve) => resolve({ then: (done) => { say('thenable'); done() } })).then(() => say('after thenable'))
    process.on('beforeExit', () => say('beforeExit')); process.on('exit', () => console.log(log.join()))`,
  'a server with pipelined, aborted and failing requests': `
    const http = require('node:http'), net = require('node:net')
    let socket
    const server = http.createServer((request, response) => {
      console.log(request.url, Reflect.ownKeys(request).map(String).join(), JSON.stringify(request.headers), request.listenerCount('close'), response.listenerCount('finish'))
      if (request.url === '/hang') return setImmediate(() => { socket.destroy(); server.close() })
      setTimeout(() => response.end(request.url), 2)
    }).listen(0, () => {
      socket = net.connect(server.address().port)
      socket.write('GET /a HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nGET /b HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
      let text = ''
      socket.on('data', (data) => {
        text += data
        if (!/\\/b$/m.test(text)) return
        console.log(text.replace(/Date: .*/g, ''))
        socket.write('GET /hang HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
      })
    })`,
  'handles that keep the process': `
    console.log(); console.error() // open stdout and stderr
    setTimeout(() => console.log(process._getActiveHandles().length, process.getActiveResourcesInfo().join()), 5)`,
  'an exit code and an error nobody catches': `
    process.on('exit', (code) => console.log('exit', code))
    setTimeout(() => { throw Object.assign(new Error('nobody'), { code: 'E' }) }, 2)`,
  'a stack overflow': `
    let caught = 0
    function down () { Promise.resolve().then(() => {}); setTimeout(() => {}, 0).unref(); down() }
    for (let i = 0; i < 10; i++) { try { down() } catch (error) { if (error instanceof RangeError) caught++ } }
    console.log(caught)`
}

for (const [name, source] of Object.entries(programs)) {
  test(`spans are invisible: ${name}`, async (t) => {
    const args = /overflow/.test(name) ? smallStack : []
    await same(t, source, { args, env: { LONGSTACK_SPANS: file(t) } })
  })
}

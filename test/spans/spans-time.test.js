'use strict'

// Breakdown of a span's time under known loads. Machines are noisy, and a process may stand still at any
// time: a busy loop lasts at least as long as it says, and the part of a timer's time that is neither run nor
// delay is wait. So parts are compared with those, and with each other.

const test = require('ava')
const { told, timesOf, one, sound, asNodeSays } = require('../helpers/spans')
const { patient } = require('../helpers/starved')

const timed = patient(test)

/**
 * Each has an engine and a mode; the first is the usual one.
 * @type {Record<string, Record<string, string>>}
 */
const ways = {
  'as it comes': {},
  'the JavaScript engine': { LONGSTACK_CAPTURE: 'js' },
  'a filter without promises': { LONGSTACK: '*,-PROMISE' }
}

// What a span does, and which subsystems may end its waits: where two end together, either.
const loads = {
  timer: ['wait(30)', ['TIMER']],
  'timers at once': ['Promise.all([wait(40), wait(20), wait(30)])', ['TIMER']],
  'fs.promises': ['fs.promises.readFile(process.execPath)', ['FS']],
  'fs with callbacks': ['new Promise((resolve) => fs.readFile(process.execPath, resolve))', ['FS']],
  dns: ["new Promise((resolve) => dns.lookup('localhost', resolve))", ['DNS']],
  pbkdf2: ["promisify(crypto.pbkdf2)('a', 'b', 300_000, 64, 'sha512')", ['CRYPTO']],
  randomBytes: ['promisify(crypto.randomBytes)(40_000_000)', ['CRYPTO']],
  zlib: ['promisify(zlib.gzip)(bytes)', ['ZLIB']],
  'child process': ["new Promise((resolve) => childProcess.execFile(process.execPath, ['-v'], { env: {} }, resolve))", ['PIPE', 'PROCESS']],
  worker: ["new Promise((resolve) => new Worker('setTimeout(() => {}, 30)', { eval: true, execArgv: [], env: {} }).on('exit', resolve))", ['WORKER']],
  interval: ['new Promise((resolve) => { let n = 0; const timer = setInterval(() => { if (++n === 3) resolve(clearInterval(timer)) }, 10) })', ['TIMER']],
  'async iterator': ['(async () => { for await (const _ of three()) busy(1) })()', ['TIMER']],
  'timers/promises': ["require('node:timers/promises').setTimeout(20)", ['TIMER']]
}

const together = `
  const fs = require('node:fs'), dns = require('node:dns'), crypto = require('node:crypto'), zlib = require('node:zlib')
  const childProcess = require('node:child_process')
  const { Worker } = require('node:worker_threads'), { promisify } = require('node:util')
  const bytes = crypto.randomBytes(6_000_000)
  async function * three () { for (let i = 0; i < 3; i++) { await wait(8); yield i } }
  ;(async () => {
    await wait(20)
    ${Object.entries(loads).map(([name, [load]]) => `await looked(${JSON.stringify(name)}, () => ${load})`).join('\n')}
    tell()
  })()`

for (const [way, env] of Object.entries(ways)) {
  /** @type {Promise<any> | undefined} */
  let result
  for (const [name, [, waits]] of Object.entries(loads)) {
    timed(`${way}, ${name}: waits until ${waits}, and for nothing else`, async (t, attempt) => {
      if (attempt > 1) result = undefined
      const all = await (result ??= told(together, { env }))
      const { span, times } = all
      sound(t, span(name))
      asNodeSays(t, all, name)
      const { wait, waited } = times(name)
      const others = Object.entries(wait).filter(([subsystem]) => !waits.includes(subsystem))
      const beside = others.reduce((sum, [, ms]) => sum + ms, 0)
      t.true(beside < waited * 0.1 + 1, JSON.stringify(wait))
    })
  }
}

timed('of concurrent waits for several subsystems, the last to end is reported', async (t) => {
  const all = await told(`
    const { pbkdf2 } = require('node:crypto')
    const hash = () => new Promise((resolve) => pbkdf2('a', 'b', 200_000, 64, 'sha512', resolve))
    setTimeout(async () => {
      let last
      const note = (subsystem) => () => { last = subsystem }
      await looked('both', () => Promise.all([wait(150).then(note('TIMER')), hash().then(note('CRYPTO'))]))
      tell({ last })
    }, 10)`)
  const { span, times } = all
  sound(t, span('both'))
  asNodeSays(t, all, 'both')
  const { run, delayed, wait, waited } = times('both')
  t.true(waited >= 150 - run - delayed - 1)
  t.true(wait[all.last] > waited * 0.9, `${all.last}: ${JSON.stringify(wait)}`)
})

timed('two concurrent waits are one, two sequential waits are both', async (t) => {
  const all = await told(`
    setTimeout(async () => {
      await looked('overlap', async () => { const late = wait(60); await wait(30); await late })
      await looked('gap', async () => { await wait(20); await new Promise((resolve) => require('node:crypto').randomBytes(60_000_000, resolve)); await wait(20) })
      tell()
    }, 10)`)
  const { times } = all
  for (const name of ['overlap', 'gap']) asNodeSays(t, all, name)
  const { duration, run, delayed, wait } = times('overlap')
  t.true(wait.TIMER >= 60 - run - delayed - 1 && wait.TIMER <= duration - run - delayed + 0.01, JSON.stringify(times('overlap')))
  const gap = times('gap')
  t.true(gap.wait.TIMER >= 40 - gap.run - gap.delayed - 1 && gap.wait.CRYPTO > 1, JSON.stringify(gap.wait))
  t.true(gap.wait.TIMER + gap.wait.CRYPTO < gap.waited + 1, 'these waits came one after the other')
})

timed('a timer that is cleared or never fires is no wait', async (t) => {
  const all = await told(`
    const { randomBytes } = require('node:crypto')
    const work = () => new Promise((resolve) => randomBytes(60_000_000, resolve))
    setTimeout(async () => {
      await looked('cleared at once', async () => { clearTimeout(setTimeout(() => {}, 5_000)); clearInterval(setInterval(() => {}, 5_000)); await work() })
      await looked('cleared later', async () => {
        const timer = setTimeout(() => {}, 5_000)
        await wait(20)
        clearTimeout(timer)
        await work()
      })
      await trace.span('a limit', async () => { setTimeout(() => {}, 5_000).unref(); await work() })
      let leaked
      await looked('leaked', async () => { leaked = setInterval(() => {}, 5_000); await work() })
      clearInterval(leaked)
      await looked('many cleared', async () => {
        const timers = Array.from({ length: 500 }, () => setTimeout(() => {}, 5_000))
        await wait(20)
        timers.forEach(clearTimeout)
        await work()
      })
      tell()
    }, 10)`)
  const { records, span, times } = all
  for (const record of records) sound(t, record)
  for (const name of ['cleared at once', 'cleared later', 'leaked', 'many cleared']) asNodeSays(t, all, name)
  for (const name of ['cleared at once', 'a limit', 'leaked']) {
    const { wait, waited } = times(name)
    t.is(wait.TIMER, undefined, name)
    t.true(wait.CRYPTO > waited * 0.9, JSON.stringify(wait))
  }
  for (const name of ['cleared later', 'many cleared']) {
    const { run, delayed, wait, waited } = times(name)
    const timer = wait.TIMER ?? 0
    t.true(timer >= 20 - run - delayed - 1 && wait.CRYPTO > 2, JSON.stringify(wait))
    t.true(timer + wait.CRYPTO < waited + 1, `${name}: ${JSON.stringify(times(name))}`)
  }
  t.is(span('a limit').attributes['longstack.end'], undefined)
})

for (const [way, env] of Object.entries(ways)) {
  timed(`${way}: blockers of the loop are listed in the spans that they delayed, worst first`, async (t) => {
    const { records, span, times } = await told(`
      setTimeout(async () => {
        const slow = (ms) => async () => { await wait(5); busy(ms) }
        await trace.span('first', () => wait(1)) // the first record takes some ms, which others wait
        await wait(30)
        await Promise.all([trace.span('less', slow(30)), trace.span('most', slow(80)), wait(5).then(() => busy(15)), trace.span('B', () => wait(20))])
        tell()
      }, 10)`, { env })
    for (const record of records) sound(t, record)
    const b = times('B')
    t.true(b.delayed >= 125 - 20 && b.waited < 25, `its timer was due after 20 ms: ${JSON.stringify(b)}`)
    t.true(b.run < b.delayed / 2)
    for (const [name, ms] of /** @type {Array<[string, number]>} */ ([['most', 80], ['less', 10]])) {
      t.true(
        b.by.some((one) => one.spanId === span(name).spanId && one.name === name && one.ms >= ms - 0.1),
        JSON.stringify(b)
      )
    }
    t.true(times('most').run >= 79.9 && times('most').delayed >= 29.9, 'most waited for less')
    t.true(times('most').by.every(({ name }) => name !== 'most'))
    const outside = b.by.find(({ spanId }) => spanId === undefined)
    t.true(outside !== undefined && outside.name === undefined && outside.ms >= 14.9, 'code outside of any span is told as such')
  })
}

timed('many short runs delay others as much as one long run', async (t) => {
  const { times } = await told(`
    const turn = () => new Promise(setImmediate)
    const many = async (n) => { for (let i = 0; i < n; i++) { busy(0.1); await turn() } }
    setTimeout(async () => {
      await Promise.all([trace.span('one', () => many(300)), trace.span('other', () => many(300))])
      tell()
    }, 10)`)
  const { delayed, by } = times('one')
  t.true(delayed >= 25)
  t.is(by[0].name, 'other')
  t.true(by[0].ms > delayed / 2, JSON.stringify(times('one')))
})

timed('an unrequested event of a connection is waited for from its await on', async (t) => {
  const { records, times } = await told(`
    const net = require('node:net')
    const { once } = require('node:events')
    const peer = net.createServer((socket) => socket.resume()).listen(0, '127.0.0.1', async () => {
      await trace.span('own', async () => {
        const socket = net.connect(peer.address().port, '127.0.0.1')
        await once(socket, 'connect')
        await wait(60)
        socket.resume().end()
        await once(socket, 'close')
      })
      peer.close()
      tell()
    })`)
  for (const record of records) sound(t, record)
  const { wait: waited } = times('own')
  t.true(waited.TIMER > (waited.TCP ?? 0), JSON.stringify(times('own')))
})

timed('nested spans have their own times, the outer one all, once; none delays its parent', async (t) => {
  const { records, span, times } = await told(`
    setTimeout(async () => {
      await trace.span('outer', async () => {
        busy(10)
        await trace.span('inner', async () => { busy(20); await wait(10); busy(20); trace.span('innermost', () => busy(15)) })
        trace.span('sync', () => busy(10))
      })
      tell()
    }, 10)`)
  for (const record of records) sound(t, record)
  t.is(span('inner').parentSpanId, span('outer').spanId)
  t.is(span('innermost').parentSpanId, span('inner').spanId)
  t.is(span('sync').parentSpanId, span('outer').spanId)
  t.is(new Set(records.map((/** @type {any} */ record) => record.traceId)).size, 1)
  const [outer, inner, innermost, sync] = ['outer', 'inner', 'innermost', 'sync'].map(times)
  t.true(innermost.run >= 15 && inner.run >= 55 && outer.run >= 75)
  t.true(Math.abs(outer.wait.TIMER - inner.wait.TIMER) < 2, 'the outer one waits for what the inner one waits for')
  t.true(sync.run >= 10 && sync.delayed < 0.01 && sync.waited < 0.01, JSON.stringify(sync))
  const ids = records.map((/** @type {any} */ record) => record.spanId)
  t.false(outer.by.some(({ spanId }) => ids.includes(spanId)))
})

timed('work left behind by an ended span belongs to the surrounding one', async (t) => {
  const { records, times } = await told(`
    setTimeout(async () => {
      await trace.span('outer', async () => {
        trace.span('brief', () => { setTimeout(() => trace.span('nested', () => busy(20)), 30); setTimeout(() => busy(10), 35) })
        await new Promise((resolve) => setTimeout(resolve, 60))
      })
      tell()
    }, 10)`)
  for (const record of records) sound(t, record)
  const outer = times('outer')
  t.true(outer.run >= 29.9, JSON.stringify(outer))
  t.true(outer.delayed < outer.run, JSON.stringify(outer))
  t.true(times('brief').duration < outer.duration / 3)
  const [brief, nested] = ['brief', 'nested'].map((name) => records.find((/** @type {any} */ record) => record.name === name))
  t.is(nested.parentSpanId, brief.spanId, 'it was made there all the same')
})

timed('a span that begins in the main script does not own the code after it', async (t) => {
  const { times } = await told(`
    const done = trace.span('open', () => wait(10))
    busy(60)
    trace.span('closed', () => busy(5))
    busy(20)
    done.then(tell)`)
  t.true(times('open').run < times('open').delayed / 3, JSON.stringify(times('open')))
  t.true(times('open').delayed >= 85 - 10 - 1, 'its timer was due after 10 ms')
  t.true(times('closed').run < times('open').delayed / 3)
})

timed("another span's resource entered inside a run has its own time, and the run continues afterwards", async (t) => {
  const { records, times } = await told(`
    const { AsyncResource } = require('node:async_hooks')
    setTimeout(async () => {
      let job
      await Promise.all([
        trace.span('owner', async () => { job = new AsyncResource('job'); await wait(150) }),
        trace.span('user', async () => {
          await wait(10)
          busy(20)
          job.runInAsyncScope(() => { busy(40); try { job.runInAsyncScope(() => { throw new Error('inside') }) } catch {} })
          busy(20)
          await wait(10)
        })
      ])
      tell()
    }, 10)`)
  for (const record of records) sound(t, record)
  const [owner, user] = ['owner', 'user'].map(times)
  t.true(owner.run >= 39.9 && user.run >= 39.9, JSON.stringify([owner, user]))
  t.true(user.delayed >= 39.9 && user.by[0].name === 'owner' && user.by[0].ms >= 39.9)
  t.true(owner.waited + owner.run > 130, 'its timer was due later than that')
})

timed('data on a connection that another span opened is waited for from the connection on', async (t) => {
  const { span } = await told(`
    const net = require('node:net')
    const server = net.createServer((socket) => socket.on('data', () => setTimeout(() => socket.write('row'), 20)))
    server.listen(0, '127.0.0.1', async () => {
      let socket, answered
      const query = () => new Promise((resolve) => { answered = resolve; socket.write('query') })
      const opened = trace.span('opener', async () => {
        socket = net.connect(server.address().port, '127.0.0.1')
        await new Promise((resolve) => socket.on('connect', resolve))
        socket.on('data', () => answered())
        await wait(90)
      })
      await wait(20)
      await trace.span('asker', async () => { await query() })
      await opened
      socket.destroy(); server.close(); tell()
    })`)
  const [wait] = span('asker').attributes['longstack.waits']
  t.regex(wait.until, /^TCP 127\.0\.0\.1:\d+$/)
  t.true(wait.ms + (wait.delayed ?? 0) >= 10)
})

timed("after a promise resolved by another span, the code is the waiter's, and the wait was for the other", async (t) => {
  const { records, times } = await told(`
    setTimeout(async () => {
      const queue = []
      await Promise.all([
        trace.span('waits', async () => { await new Promise((resolve) => queue.push(resolve)); busy(30) }),
        trace.span('resolves', async () => { await wait(40); queue.pop()(); busy(15) })
      ])
      tell()
    }, 10)`)
  for (const record of records) sound(t, record)
  const { run, delayed, waited, waits, by } = times('waits')
  t.true(run >= 29.9)
  t.true(waited > 40 - run - delayed - 1, JSON.stringify(times('waits')))
  t.regex(String(waits[0].until), /\bresolves\b/, 'the other span ended its wait')
  t.true(by.some(({ name, ms, max = ms }) => name === 'resolves' && max >= 14.9), 'when it resolved is not known')
  t.true(times('resolves').by.some((one) => one.name === 'waits' && one.ms >= 29.9), 'its end comes after that')
})

for (const [name, next] of [['setImmediate', 'setImmediate'], ['process.nextTick', 'process.nextTick'], ['queueMicrotask', 'queueMicrotask']]) {
  timed(`${name} that calls itself is all run time`, async (t) => {
    const { span, times } = await told(`
      setTimeout(async () => {
        await trace.span('loop', () => new Promise((resolve) => { let n = 0; ${next}(function turn () { busy(1); ++n < 60 ? ${next}(turn) : resolve() }) }))
        tell()
      }, 10)`)
    sound(t, span('loop'))
    const { duration, run, waited } = times('loop')
    t.true(run >= 59 && run > duration * 0.7, JSON.stringify(times('loop')))
    t.true(waited < duration / 10, 'longstack reads its log meanwhile')
  })
}

for (const [way, env] of Object.entries(ways)) {
  timed(`${way}: errors that escape callbacks leave nothing behind`, async (t) => {
    const { records, times } = await told(`
      process.on('uncaughtException', () => {})
      const { AsyncResource } = require('node:async_hooks')
      setTimeout(async () => {
        await Promise.all([
          trace.span('throws', async () => {
            for (let i = 0; i < 5; i++) setTimeout(() => { busy(4); new AsyncResource('deep').runInAsyncScope(() => { throw new Error('x') }) }, 10)
            await wait(60)
          }),
          trace.span('beside', async () => { await wait(30); busy(20); await wait(30) })
        ])
        await trace.span('later', async () => { busy(20); await wait(20) })
        busy(30)
        await wait(1)
        tell()
      }, 10)`, { env })
    for (const record of records) sound(t, record)
    t.true(times('throws').run >= 19.9)
    t.true(times('beside').run >= 19.9)
    t.true(times('beside').by.some(({ name, ms }) => name === 'throws' && ms >= 3.9))
    const { duration, run, waited, delayed } = times('later')
    t.true(run >= 19.9 && waited >= 40 - run - delayed - 1 && delayed < duration / 3, JSON.stringify(times('later')))
  })
}

timed('a wait whose end is no async_hooks event is no run', async (t) => {
  const all = await told(`
    const cell = new Int32Array(new SharedArrayBuffer(4))
    setTimeout(async () => {
      const held = setInterval(() => {}, 10_000) // else there is nothing that the loop waits for
      await looked('cell', async () => { await Atomics.waitAsync(cell, 0, 0, 60).value; busy(10) })
      clearInterval(held)
      tell()
    }, 10)`)
  sound(t, all.span('cell'))
  asNodeSays(t, all, 'cell')
  const { run, delayed, wait, waited } = all.times('cell')
  t.true(run >= 9.9)
  t.true(waited >= 70 - run - delayed - 1)
  t.true(wait.unknown > waited * 0.9, JSON.stringify(wait))
})

timed('with a filter, sites are known for the selected types; figures stay right', async (t) => {
  const { records, times } = await told(`
    const net = require('node:net')
    const server = net.createServer((socket) => setTimeout(() => socket.end('x'), 40)).listen(0, async () => {
      await wait(10)
      await trace.span('timer', async () => { await wait(30); busy(10) })
      await trace.span('socket', () => new Promise((resolve) => net.connect(server.address().port).resume().on('close', resolve)))
      await Promise.all([trace.span('A', async () => { await wait(5); busy(80) }), trace.span('B', () => wait(20))])
      server.close(() => tell())
    })`, { env: { LONGSTACK: 'TCP' } })
  for (const record of records) sound(t, record)
  const { waited, waits, run, delayed } = times('timer')
  t.true(waited >= 40 - run - delayed - 1 && run >= 9.9)
  t.true(waits.every(({ at }) => at === undefined), JSON.stringify(waits))
  t.true(times('socket').wait.TCP > times('socket').waited * 0.9, JSON.stringify(times('socket')))
  t.true(times('B').by.some(({ name, ms, max = ms }) => name === 'A' && max >= 60))
  t.true(times('B').most >= 60)
})

timed('sockets and pipes are waited for; merely open ones are no wait', async (t) => {
  const { records, times } = await told(`
    const net = require('node:net'), fs = require('node:fs'), os = require('node:os'), path = require('node:path'), dgram = require('node:dgram')
    const name = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-')), 'pipe')
    const answer = (socket) => setTimeout(() => socket.end('x'), 300)
    const tcp = net.createServer(answer).listen(0, '127.0.0.1', () => {
      const pipe = net.createServer(answer).listen(name, async () => {
        const get = (where) => new Promise((resolve) => net.connect(where).resume().on('close', resolve))
        await wait(10)
        await trace.span('tcp', () => get({ port: tcp.address().port, host: '127.0.0.1' }))
        await trace.span('pipe', () => get(name))
        await trace.span('udp', () => new Promise((resolve) => {
          const socket = dgram.createSocket('udp4').bind(0, () => setTimeout(() => socket.close(resolve), 20))
        }))
        await trace.span('after', async () => { await new Promise((resolve) => { const timer = setTimeout(resolve, 20) }) })
        tcp.close(); pipe.close(() => { fs.rmSync(path.dirname(name), { recursive: true, force: true }); tell() })
      })
    })`)
  for (const record of records) sound(t, record)
  for (const [name, subsystem] of [['tcp', 'TCP'], ['pipe', 'PIPE'], ['after', 'TIMER']]) {
    const { wait, waited } = times(name)
    t.true(wait[subsystem] > waited * 0.9, `${name}: ${JSON.stringify(wait)}`)
  }
  const { wait, waited } = times('udp')
  t.true(wait.TIMER > waited * 0.6, JSON.stringify(wait))
})

timed('a worker has its own loop, and its spans name their thread', async (t) => {
  const { records, inside } = await told(`
    const { Worker } = require('node:worker_threads')
    const source = ${JSON.stringify(`
      const { trace, busy, wait, records } = require(process.env.PRELUDE)
      setTimeout(async () => {
        await Promise.all([trace.span('A', async () => { await wait(5); busy(80) }), trace.span('B', () => wait(20))])
        trace.stats() // listeners have what has ended
        require('node:worker_threads').parentPort.postMessage(records)
      }, 20)`)}
    setTimeout(() => {
      const worker = new Worker(source, { eval: true, env: { ...process.env, PRELUDE: ${JSON.stringify(require.resolve('../fixtures/spans/prelude'))} } })
      const main = trace.span('main', () => wait(30))
      worker.on('message', async (inside) => { await main; tell({ inside }) })
    }, 10)`)
  const b = timesOf(one(inside, 'B'))
  for (const record of [...records, ...inside]) sound(t, record)
  t.true(b.by.some(({ name, ms }) => name === 'A' && ms >= 60))
  t.is(typeof inside[0].resource['longstack.thread'], 'number')
  const main = timesOf(one(records, 'main'))
  t.true(main.by.every(({ name }) => name !== 'A'), 'another thread delays nobody here')
})

timed('spans that are open across garbage collections keep their figures', async (t) => {
  const { records, times } = await told(`
    setTimeout(async () => {
      await Promise.all(Array.from({ length: 50 }, (_, i) => trace.span('span' + i, async () => {
        for (let n = 0; n < 3; n++) { await wait(10); busy(0.5) }
      })).concat((async () => { for (let n = 0; n < 5; n++) { await wait(6); gc() } })()))
      tell()
    }, 10)`, { args: ['--expose-gc'] })
  t.is(records.length, 50)
  for (const record of records) sound(t, record)
  for (let i = 0; i < 50; i++) {
    const { run, delayed, waited } = times(`span${i}`)
    t.true(run >= 1.4)
    t.true(waited >= 30 - run - delayed - 1)
  }
})

timed('the longest runs are listed from the span\'s start on, and lie within it', async (t) => {
  const { span, times } = await told(`
    setTimeout(async () => {
      await trace.span('runs', async () => { for (let i = 0; i < 100; i++) { await wait(1); busy(i === 50 ? 20 : 0.1) } })
      tell()
    }, 10)`)
  const { attributes } = span('runs')
  const runs = attributes['longstack.runs']
  const { duration, run } = times('runs')
  t.true(runs.length > 64, String(runs.length))
  t.true(runs.some((/** @type {any[]} */ [, ms, type]) => ms >= 19.9 && type === 'Timeout'))
  t.true(runs.every((/** @type {any[]} */ [start, ms]) => start >= 0 && start + ms <= duration + 0.01))
  t.true(runs.reduce((/** @type {number} */ sum, /** @type {any[]} */ [, ms]) => sum + ms, 0) <= run + 0.1)
})

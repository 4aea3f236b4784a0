'use strict'

// The option `box`: what is known of a process after it has died, in each of the ways in which one can die.

const { execFileSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { setTimeout: wait } = require('node:timers/promises')
const test = require('ava')
const layout = require('../../lib/record/box-layout')
const { OpenTable } = require('../../lib/record/open-table')
const { recordingOf } = require('../../report/read/box-file')
const { BlockReader } = require('../../report/read/recording-file')
const { ask, boxes, cli, ended, hasBoxes, isOver, report, start } = require('../helpers/box')
const { makeGroup } = require('../helpers/cgroup')
const { inherited, node, program, register, root, runsAll } = require('../helpers/run')
const { folder } = require('../helpers/sinks')

const where = hasBoxes ? test : test.skip

/**
 * @typedef {object} End
 * @property {string} name
 * @property {string} [url] of the request that ends it
 * @property {NodeJS.Signals} [signal] otherwise
 * @property {string} cause
 * @property {RegExp} sentence
 * @property {string[]} [flags]
 */

/** @type {End[]} */
const ends = [
  { name: 'kill -9 while it is idle', signal: 'SIGKILL', cause: 'unknown', sentence: /No callback was running; 2 requests were in flight/ },
  { name: 'a segmentation fault', url: '/crash', flags: ['--expose-internals'], cause: 'unknown', sentence: /running a callback for GET \/crash.*; 3 requests were in flight/ },
  { name: 'a stack that is full for the system', url: '/recurse', flags: ['--stack-size=60000'], cause: 'unknown', sentence: /running a callback for GET \/recurse.*; 3 requests were in flight/ },
  { name: 'process.abort', url: '/abort', cause: 'unknown', sentence: /running a callback for GET \/abort.*; 3 requests were in flight/ },
  { name: 'a full heap', url: '/fill', flags: ['--max-old-space-size=40'], cause: 'heap', sentence: /with a full heap: \d+ MB of at most \d+ MB.*callback for GET \/fill/ }
]

for (const { name, url, signal, cause, sentence, flags } of ends) {
  where(`${name}: the callback, its request and those in flight are known`, async (t) => {
    const running = await start(t, { flags })
    const [port] = running.ports
    for (let i = 0; i < 20; i++) t.is(await ask(port, '/ok'), 200)
    for (let i = 0; i < 2; i++) ask(port, '/wait')
    await wait(300)
    if (url === undefined) running.child.kill(signal)
    else ask(port, url)
    await ended(running)
    t.is(boxes(running.directory).length, 1, running.stderr())
    const model = await report(running.directory)
    const [first] = model.verdict
    t.is(first.rule, 'death')
    t.is(first.figures.cause, cause, first.sentence)
    t.regex(first.sentence, sentence)
    t.is(first.figures.pid, running.child.pid)
    t.is(model.routes.find((/** @type {any} */ route) => route.name === 'GET /ok').count, 20)
    const open = model.open.map((/** @type {any} */ span) => span.name)
    t.deepEqual(open, ['GET /wait', 'GET /wait', ...url === undefined ? [] : [`GET ${url}`]])
    t.true(model.open[0].ms >= 100, String(model.open[0].ms))
  })
}

/**
 * Asks for each URL again and again until the process has ended.
 * @param {Service} running
 * @param {string[]} urls
 */
async function askUntilEnd (running, urls) {
  const [port] = running.ports
  await Promise.all(urls.map(async (url) => {
    while (!isOver(running)) if (await ask(port, url) === undefined) await wait(20)
  }))
}

where('a leak fills the heap: its function and route are named, not the route that makes garbage', async (t) => {
  const running = await start(t, { flags: ['--max-old-space-size=60'] })
  await askUntilEnd(running, ['/garbage', '/leak'])
  const { verdict: [first] } = await report(running.directory)
  t.is(first.figures.cause, 'heap', first.sentence)
  t.regex(first.figures.heldAt, /^keepRows \(.*service\.js:/, first.sentence)
  t.is(first.figures.heldBy, 'GET /leak')
  t.true(first.figures.heldShare > 0.7, first.sentence)
  t.regex(first.sentence, /\d+ % of the \d+ MB that it kept .* allocated by keepRows \(service\.js:\d+\), for GET \/leak/)
})

where('open handles are listed by opener, with their growth', async (t) => {
  const running = await start(t)
  const [port] = running.ports
  const isKnown = async () => (await report(running.directory)).verdict.some((/** @type {any} */ { rule }) => rule === 'grows')
  const load = (async () => {
    for (; !isOver(running); await wait(50)) await ask(port, '/open')
  })()
  const last = Date.now() + 40_000 // a busy process counts less often
  do await wait(3000); while (Date.now() < last && !await isKnown())
  running.child.kill('SIGKILL') // while the number grows
  await ended(running)
  await load
  const { handles, verdict } = await report(running.directory)
  const [files] = handles
  t.like(files, { noun: 'file' })
  t.regex(files.at, /^readConfig \(.*service\.js:\d+:\d+\)$/)
  t.true(files.count >= 20, String(files.count))
  t.true(handles.some((/** @type {any} */ { noun }) => noun === 'TCP server'), JSON.stringify(handles))
  const grown = verdict.find((/** @type {any} */ { rule }) => rule === 'grows')
  t.regex(String(grown?.sentence), /^\d+ × file opened at readConfig \(service\.js:\d+\) are open, /)
  const { stdout } = await node([cli, running.directory])
  t.regex(stdout, /\nOpen handles\n {2}\d+ × file opened at readConfig \(service\.js:\d+\)\n/)
})

for (const { name, url, sentence } of [
  { name: 'Buffers', url: '/upload', sentence: /GET \/upload allocated \d+ % of the \d+ MB outside of the heap/ },
  { name: 'objects', url: '/leak', sentence: /allocated by keepRows \(service\.js:\d+\), for GET \/leak/ }
]) {
  where(`${name} fill a container's memory: the kernel's kill and the route are reported`, async (t) => {
    const group = makeGroup(t, 'memory', ['memory.max', 'memory.limit_in_bytes'])
    if (group === undefined) return
    group.limit(200e6)
    const running = await start(t, { flags: ['--max-old-space-size=400'], enter: group.enter })
    await askUntilEnd(running, ['/garbage', url])
    t.is(running.child.signalCode, 'SIGKILL', running.stderr())
    const { verdict: [first] } = await report(running.directory)
    t.is(first.figures.cause, 'memory', first.sentence)
    t.is(first.figures.heldBy, `GET ${url}`, first.sentence)
    t.regex(first.sentence, sentence)
  })
}

test('a box counts open requests that have no slot', (t) => {
  const part = Buffer.alloc(layout.RING)
  const table = new OpenTable(part.subarray(layout.TABLE), part)
  const spanOf = (/** @type {number} */ seq, kind = 'SERVER') =>
    /** @type {any} */ ({ seq, kind, name: `GET /${seq}`, start: seq, copyIds () {} })
  const leftOut = () => part.readUInt32LE(layout.part.leftOut)
  const count = layout.SLOTS + 100
  for (let i = 1; i <= count; i++) table.add(spanOf(i))
  table.add(spanOf(count + 1, 'INTERNAL'))
  t.is(leftOut(), 100)
  t.is(table.nameOf(1), 'GET /1')
  t.is(table.nameOf(count), undefined)
  for (let i = count; i > count - 40; i--) table.remove(spanOf(i))
  table.remove(spanOf(count + 1, 'INTERNAL'))
  t.is(leftOut(), 60)
  for (let i = 1; i <= count - 40; i++) table.remove(spanOf(i))
  t.is(leftOut(), 0)
})

where('the function of an endless loop is known, although the process cannot be queried', async (t) => {
  const running = await start(t)
  ask(running.ports[0], '/spin')
  await wait(2500)
  const live = await report(running.directory)
  const [stuck] = live.verdict
  t.is(stuck.rule, 'stuck', 'it lives')
  t.regex(stuck.sentence, /is stuck: for \S+ s it has been .* for GET \/spin that is inside spin \(service\.js:\d+\)/)
  t.deepEqual(live.open.map((/** @type {any} */ span) => span.name), ['GET /spin'])
  running.child.kill('SIGKILL')
  await ended(running)
  const { verdict: [first] } = await report(running.directory)
  t.is(first.figures.cause, 'stuck')
  t.regex(first.sentence, /stuck.* for GET \/spin that was inside spin \(service\.js:\d+\)/)
  t.true(first.figures.runningMs > 1500, String(first.figures.runningMs))
})

where('a living process that cannot be queried: PID reads its box; so does top if requested', async (t) => {
  const flag = '--disable-sigusr1' // without it, its inspector is asked first
  const flags = process.allowedNodeEnvironmentFlags.has(flag) ? [flag] : []
  const running = await start(t, { flags })
  const { pid } = running.child
  ask(running.ports[0], '/wait')
  ask(running.ports[0], '/spin')
  await whyWith(String(running.child.pid), /is stuck: .* inside spin/s)
  for (const words of [[], ['top', '--once', '--ask']]) {
    const { stdout, code } = await node([cli, ...words, String(pid)])
    t.is(code, 1)
    const text = stdout.replace(/\s+/g, ' ')
    t.regex(text, /From its black box, .*\.box: .*is stuck: for .* for GET \/spin .*; 2 requests are in flight/)
  }
  if (flags.length === 0) return
  const { stdout } = await node([cli, String(pid), '--json'])
  const { verdict: [first], open } = JSON.parse(stdout)
  t.is(first.rule, 'stuck')
  t.deepEqual(open.map((/** @type {any} */ { name }) => name), ['GET /wait', 'GET /spin'])
})

where('longstack PID reads the box of a process without disturbing it', async (t) => {
  const running = await start(t)
  const { pid } = running.child
  for (let i = 0; i < 3; i++) t.is(await ask(running.ports[0], '/ok'), 200)
  for (let i = 0; i < 2; i++) ask(running.ports[0], '/await')
  ask(running.ports[0], '/wait')
  ask(running.ports[0], '/stream') // responds for as long as its client listens
  const upload = http.request({ port: running.ports[0], path: '/wait', method: 'POST', host: '127.0.0.1' })
  t.teardown(() => { upload.destroy() })
  upload.on('error', () => {}).write('the beginning')
  await wait(7000)
  const { stdout, code } = await node([cli, String(pid)])
  t.is(code, 0)
  const text = stdout.replace(/\s+/g, ' ')
  t.regex(text, /^From its black box, \S+\.box: 3 requests in .* s: .*; 5 in flight /)
  t.regex(text, /hangs GET \/await has been pending for \S+ s \(the oldest of 2\); it waits for await at \/await \(service\.js:\d+\)\./)
  t.regex(text, /hangs GET \/wait has been pending for \S+ s; no await or connection of it is pending\./)
  t.regex(text, /hangs POST \/wait has been pending for \S+ s; it waits for the rest of the request\./)
  t.notRegex(text, /\/stream/)
  t.regex(text, /next: longstack report \S+\.box $/)
  const { findings: [first], requests, boxes: [box] } = JSON.parse((await node([cli, String(pid), '--json'])).stdout)
  t.is(first.kind, 'hangs')
  t.deepEqual([requests.count, requests.inFlight], [3, 5])
  t.is(fs.realpathSync(box), fs.realpathSync(path.join(running.directory, boxes(running.directory)[0])))
  t.is(running.stderr(), '')
  const asked = await node([cli, String(pid), '--seconds', '1'])
  t.notRegex(asked.stdout, /^From its black box/, 'it asks first') // beside other tests, in vain at times
})

/**
 * Runs longstack why until it prints all of these, which takes a while on a busy machine: a count of handles
 * that took long is not soon repeated.
 * @param {string} pid
 * @param {RegExp[]} patterns
 */
async function whyWith (pid, ...patterns) {
  for (let i = 0; i < 60; i++) {
    const answer = await node([cli, 'why', pid])
    if (patterns.every((pattern) => pattern.test(answer.stdout))) return answer
    await wait(500)
  }
  return await node([cli, 'why', pid])
}

where('longstack why PID reads the box of a process without disturbing it', async (t) => {
  const running = await start(t, { args: ['--worker'] })
  const pid = String(running.child.pid)
  const why = async (/** @type {string[]} */ ...flags) => await node([cli, 'why', pid, ...flags])
  await wait(4000) // the program has opened its servers, and done nothing since
  const first = await why()
  t.regex(first.stdout, /^From its black box, \S+\.box:\n\nOpen handles {2}counted \S+ m?s ago\n/)
  t.regex(first.stdout, /\n {2}1 × TCP server \(server\.listen\); keeps the process alive\n/)
  t.regex(first.stdout, /\n {2}thread 1: 1 × TCP server \(server\.listen\); keeps the process alive\n/)
  t.is(first.code, 0)
  for (let i = 0; i < 2; i++) ask(running.ports[0], '/await')
  ask(running.ports[1], '/wait')
  ask(running.ports[0], '/stream')
  await wait(3000)
  const { stdout, code } = await whyWith(pid, /timer opened at \/wait/, /3 × TCP/)
  t.is(code, 0)
  const text = stdout.replace(/\s+/g, ' ')
  t.regex(text, / 2 × GET \/await, the oldest open for \S+ s when written, .*; pending: await at \/await \(\S+:\d+\) for \S+ s /)
  t.regex(text, / GET \/wait, open for .*; no await or connection of it is pending /)
  t.regex(text, / GET \/stream, open for [^;]*; responding /)
  t.regex(text, / 3 × TCP connection \(connection accepted\); keep the process alive /)
  t.regex(text, / thread 1: 1 × timer opened at \/wait \(service\.js:\d+\); keeps the process alive /)
  t.regex(text, / --ask asks the process itself, .*\. $/)
  const { boxes: [box], open, handles } = JSON.parse((await why('--json')).stdout)
  t.is(path.basename(box), boxes(running.directory)[0])
  t.is(open.length, 4)
  const { agoMs, ...connections } = handles.find((/** @type {any} */ { noun, thread }) => noun === 'TCP connection' && thread === 0)
  t.deepEqual(connections, { pid: running.child.pid, thread: 0, noun: 'TCP connection', at: 'connection accepted', count: 3, keeping: 3 })
  t.true(agoMs >= 0 && agoMs < 30_000, String(agoMs))
  t.is(running.stderr(), '')
  for (const flags of [['--ask'], ['--only', 'TCP'], ['--older-than', '1']]) {
    t.notRegex((await why(...flags)).stdout, /^From its black box/, flags.join())
  }
})

where('a permanently blocked loop without an inspector: longstack why PID reads the box', async (t) => {
  const flag = '--disable-sigusr1'
  const flags = process.allowedNodeEnvironmentFlags.has(flag) ? [flag] : []
  const running = await start(t, { flags })
  ask(running.ports[0], '/wait')
  await whyWith(String(running.child.pid), /timer opened at \/wait/)
  ask(running.ports[0], '/spin')
  await whyWith(String(running.child.pid), /is stuck: .* inside spin/s)
  for (const words of [[], ['--watch=0.1']]) {
    const asked = node([cli, 'why', ...words, String(running.child.pid)])
    if (words.length > 0) setTimeout(() => running.child.kill('SIGKILL'), 15_000)
    const { stdout, stderr, code } = await asked
    const text = stdout.replace(/\s+/g, ' ')
    t.is(code, 1, stdout)
    t.is(stderr, '')
    t.regex(text, /^From its black box, \S+: Verdict 1\. The event loop .* is stuck: .* for GET \/spin .* inside spin \(service\.js:\d+\)/)
    t.regex(text, / Open handles counted \S+ s ago .* 1 × timer opened at \/wait \(service\.js:\d+\); keeps the process alive /)
    if (words.length > 0) t.true(text.split('From its black box').length > 2, 'it repeats')
  }
  t.is(running.stderr(), '')
})

where('longstack PID watches a process whose box it cannot read', async (t) => {
  const running = await start(t)
  const { pid } = running.child
  const first = await node([cli, String(pid)])
  // On a busy machine, the box shows that
  t.regex(first.stdout, /^From its black box, [^]*(?:\n--seconds 10 watches the process itself, [^]*\nnothing found, no requests|waited for a CPU[^]*)\n$/)
  const box = fs.openSync(path.join(running.directory, boxes(running.directory)[0]), 'r+')
  fs.writeSync(box, Buffer.from([layout.VERSION + 1, 0, 0, 0]), 0, 4, layout.head.version)
  fs.closeSync(box)
  const { stdout } = await node([cli, String(pid)])
  t.notRegex(stdout, /^From its black box/)
})

where('truncating a box ends its process, as documented', async (t) => {
  const running = await start(t)
  fs.truncateSync(path.join(running.directory, boxes(running.directory)[0]))
  await ended(running)
  t.is(running.child.signalCode, 'SIGBUS', running.stderr())
})

where('workers have their own parts; a part is dropped when its worker ends normally', async (t) => {
  const running = await start(t, { args: ['--worker'] })
  const [main, worker] = running.ports
  t.is(await ask(main, '/ok'), 200)
  for (let i = 0; i < 3; i++) t.is(await ask(worker, '/ok'), 200)
  ask(worker, '/wait')
  await wait(400)
  running.child.kill('SIGKILL')
  await ended(running)
  t.is(boxes(running.directory).length, 1)
  const model = await report(running.directory)
  t.is(model.routes.find((/** @type {any} */ route) => route.name === 'GET /ok').count, 4)
  t.deepEqual(model.open.map((/** @type {any} */ span) => span.name), ['GET /wait'])
  t.is(model.verdict.filter((/** @type {any} */ { rule }) => rule === 'death').length, 1)
})

/** @type {Array<[name: string, url: string | undefined, signal: NodeJS.Signals | undefined]>} */
const orderly = [
  ['process.exit', '/exit', undefined],
  ['an uncaught error', '/throw', undefined],
  ['SIGTERM', undefined, 'SIGTERM'],
  ['SIGINT', undefined, 'SIGINT']
]
for (const [name, url, signal] of orderly) {
  where(`${name} removes the box; with keep it stays, and is not reported as a crash`, async (t) => {
    for (const box of ['', ',keep']) {
      const running = await start(t, { box })
      const [port] = running.ports
      t.is(await ask(port, '/ok'), 200)
      await wait(50) // the response ends a little later here
      if (url === undefined) running.child.kill(signal)
      else ask(port, url)
      await ended(running)
      if (signal !== undefined) t.is(running.child.signalCode, signal)
      t.is(boxes(running.directory).length, box === '' ? 0 : 1, running.stderr())
      if (box === '') continue
      const model = await report(running.directory)
      t.is(model.routes.find((/** @type {any} */ route) => route.name === 'GET /ok').count, 1)
      t.false(model.verdict.some((/** @type {any} */ { rule }) => rule === 'death'))
    }
  })
}

where('the next start lists the boxes of dead processes in one line, and removes none', async (t) => {
  const first = await start(t)
  const { directory } = first
  first.child.kill('SIGKILL')
  await ended(first)
  const second = await start(t, { directory })
  t.regex(second.stderr(), /^longstack: 1 black box of a process that died: longstack report \S+\.box\n$/)
  const third = await start(t, { directory }) // the second lives
  t.is(third.stderr().split('\n').length, 2)
  t.is(boxes(directory).length, 3)
  for (const { child } of [second, third]) child.kill('SIGTERM')
  await Promise.all([second, third].map((each) => ended(each)))
  t.is(boxes(directory).length, 1)
})

/** @type {Array<[name: string, code: RegExp, prepare: (directory: string) => string]>} */
const refused = [
  ['a directory that others may write to', /others may write to/, (directory) => {
    fs.mkdirSync(directory)
    fs.chmodSync(directory, 0o777)
    return directory
  }],
  ['a directory where none can be created', /EACCES|ENOENT|EPERM|EROFS/, () => '/proc/boxes'],
  ['a file in place of the directory', /EEXIST|ENOTDIR/, (directory) => {
    fs.writeFileSync(directory, '')
    return directory
  }]
]
for (const [name, sentence, prepare] of refused) {
  where(`${name}: one line, and the program runs without a box`, async (t) => {
    const directory = prepare(path.join(folder(t), 'boxes'))
    const { stdout, stderr, code } = await program("console.log('ran')", { env: { LONGSTACK_BOX: directory } })
    t.is(stdout, 'ran\n')
    t.is(code, 0)
    t.regex(stderr, sentence)
    t.is(stderr.split('\n').length, 2, stderr)
  })
}

where('a link with the box\'s name is not followed', (t) => {
  const directory = path.join(folder(t), 'boxes')
  const target = path.join(directory, 'target')
  fs.mkdirSync(directory, { mode: 0o700 })
  fs.writeFileSync(target, 'mine')
  const line = `ln -s target '${directory}'/longstack-$$.box; exec '${process.execPath}' -r '${register}' -e ` +
    '"process.abort()"'
  t.throws(() => execFileSync('sh', ['-c', `ulimit -c 0; ${line}`], {
    env: { ...inherited, LONGSTACK_BOX: directory }, stdio: 'pipe'
  }))
  t.is(fs.readFileSync(target, 'utf8'), 'mine')
  t.true(boxes(directory).some((name) => name.endsWith('.2.box')))
})

where('invalid options are rejected', async (t) => {
  for (const value of [',keep', 'boxes,size=1KiB', 'boxes,size=5', 'boxes,loud']) {
    const { stderr, code } = await program('', { env: { LONGSTACK_BOX: value } })
    t.is(code, 0)
    t.regex(stderr, /^longstack: LONGSTACK_BOX: .*must be a directory/, value)
  }
})

where('the program turns it on and off, beside a recording', async (t) => {
  const directory = folder(t)
  const { stdout, stderr } = await program(`
    const fs = require('node:fs')
    const trace = require(${JSON.stringify(root)})
    const wait = require('node:timers/promises').setTimeout
    const present = () => fs.readdirSync('boxes').filter((name) => name.endsWith('.box')).length
    fs.mkdirSync('boxes', { mode: 0o700 })
    ;(async () => {
      const counts = []
      for (let i = 0; i < 3; i++) {
        await trace.span('before ' + i, {}, () => wait(20))
        trace.enable({ box: 'boxes', record: 'app.rec' })
        await trace.span('during ' + i, {}, () => wait(20))
        counts.push(present(), trace.stats().box?.bytes > 1e7)
        trace.disable()
        counts.push(present())
        trace.enable({ record: 'app.rec' })
        await trace.span('after ' + i, {}, () => wait(20))
      }
      console.log(JSON.stringify(counts))
    })()`, { cwd: directory, env: { LONGSTACK_RECORD: 'app.rec' } })
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), [1, true, 0, 1, true, 0, 1, true, 0])
  const spans = await node([cli, 'spans', path.join(directory, 'app.rec')])
  for (const name of ['before', 'during', 'after']) {
    for (let i = 0; i < 3; i++) t.true(spans.stdout.includes(`"${name} ${i}"`), `${name} ${i}`)
  }
})

where('requests in flight have the waits that they are in', async (t) => {
  const peer = http.createServer(() => {}).listen(0, '127.0.0.1')
  await once(peer, 'listening')
  const { port: peerPort } = /** @type {import('node:net').AddressInfo} */ (peer.address())
  const running = await start(t, { env: { PEER: String(peerPort) } })
  for (const url of ['/await', '/call', '/wait']) ask(running.ports[0], url)
  await wait(3000)
  running.child.kill('SIGKILL')
  await ended(running)
  peer.close().closeAllConnections()
  const { open } = await report(running.directory)
  const pendingOf = (/** @type {string} */ url) =>
    open.find((/** @type {any} */ { name }) => name === `GET ${url}`).pending
  t.regex(pendingOf('/await')[0].what, /^await at \/await \(.*service\.js:\d+:\d+\)$/)
  t.true(pendingOf('/await')[0].ms > 1500)
  t.is(pendingOf('/call')[0].what, `GET http://127.0.0.1:${peerPort}/stock`)
  const { stdout } = await node([cli, running.directory])
  t.regex(stdout.replace(/\s+/g, ' '), /GET \/call, open for .*; pending: GET http:\/\/127\.0\.0\.1:\d+\/stock for/)
  const [name] = boxes(running.directory)
  const spans = await node([cli, 'spans', path.join(running.directory, name)])
  t.is(spans.stdout.match(/"longstack\.end":"open"/g)?.length, 3, spans.stderr)
})

where('recently ended requests are known before their texts reach a disk or block', async (t) => {
  const running = await start(t)
  const [port] = running.ports
  for (let i = 0; i < 20; i++) t.is(await ask(port, '/ok'), 200)
  await wait(400)
  for (let i = 0; i < 10; i++) t.is(await ask(port, '/ok'), 200)
  await wait(20)
  running.child.kill('SIGKILL')
  await ended(running)
  const model = await report(running.directory)
  const { count } = model.routes.find((/** @type {any} */ { name }) => name === 'GET /ok')
  t.is(count + model.open.length, 30) // on a busy machine some may not have ended
  t.true(count > 20, String(count))
})

where('beyond its capacity, the box has the newest requests and all in flight', async (t) => {
  const running = await start(t, { box: ',size=4MiB' })
  const [port] = running.ports
  ask(port, '/wait')
  const count = runsAll ? 6000 : 3000
  for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: 50 }, () => ask(port, '/ok')))
  await wait(300)
  for (const words of [[], ['why']]) {
    const { stdout } = await node([cli, ...words, String(running.child.pid)])
    t.regex(stdout, /^From its black box/, 'that the beginning is missing is no reason to disturb the process')
  }
  running.child.kill('SIGKILL')
  await ended(running)
  const model = await report(running.directory)
  t.deepEqual(model.open.map((/** @type {any} */ span) => span.name), ['GET /wait'])
  const { count: held } = model.routes.find((/** @type {any} */ route) => route.name === 'GET /ok')
  t.true(held >= 500 && held <= count, String(held))
})

where('a truncated, damaged or hostile box gives a sentence or its readable part, never an error', async (t) => {
  const running = await start(t)
  const [port] = running.ports
  for (let i = 0; i < 20; i++) await ask(port, '/ok')
  ask(port, '/wait')
  await wait(300)
  running.child.kill('SIGKILL')
  await ended(running)
  const [name] = boxes(running.directory)
  const file = path.join(running.directory, name)
  const whole = fs.readFileSync(file)
  const head = whole.subarray(0, 1 << 21)
  let seed = 1
  const random = () => (seed = Math.imul(seed, 48271) & 0x7fffffff) / 0x7fffffff
  for (let i = 0; i < (runsAll ? 300 : 60); i++) {
    const bytes = Buffer.from(i % 2 === 0 ? whole.subarray(0, Math.floor(random() * whole.length)) : whole)
    const isWild = i % 3 === 0 // whole words, near the start of a page
    for (let j = 0; j < 20 && bytes.length > 4096; j++) {
      const offset = isWild ? Math.floor(random() * 3) * 4096 + Math.floor(random() * 40) * 4 : 0
      if (isWild) bytes.writeUInt32LE(Math.floor(random() * 2 ** 32), Math.min(offset, bytes.length - 4))
      else bytes[Math.floor(random() * Math.min(bytes.length, head.length))] = Math.floor(random() * 256)
    }
    const { recording } = recordingOf(bytes, false)
    const reader = new BlockReader()
    t.notThrows(() => [...reader.push(recording), ...reader.end()])
  }
  for (const length of [2, 100, 5000, 3 << 20]) {
    fs.truncateSync(file, length)
    const { stderr, code } = await node([cli, 'report', file])
    t.true(code === 0 || code === 1, stderr)
    t.notRegex(stderr, /\n {4}at /)
  }
})

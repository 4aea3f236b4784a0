'use strict'

// V8 runs no `finally` in code that it terminates: longstack must leave no state set.

const test = require('ava')
const { spawn, spawnSync } = require('node:child_process')
const { EventEmitter, once } = require('node:events')
const path = require('node:path')
const { root, runsAll, program } = require('../helpers/run')
const { terminateAtRandom } = require('../../fuzz/termination')

// As a user has it: where a source is newer than the bundle, that is not used
test.before('the bundle is built from the sources', (t) => {
  const build = path.join(root, 'lib', 'start', 'build.js')
  const { status, stderr } = spawnSync(process.execPath, [build], { encoding: 'utf8' })
  t.is(status, 0, stderr)
})

const COUNT = runsAll ? 100 : 40
const modes = /** @type {const} */ (['full', 'spans'])

for (const engine of /** @type {const} */ (['native', 'js'])) {
  for (const mode of modes) {
    test(`code terminated at random instants leaves nothing behind: ${engine}, ${mode}`, async (t) => {
      t.timeout(600_000)
      const seed = Math.floor(Math.random() * 1e6)
      const settings = { seed, count: COUNT, engine, mode }
      const { findings, terminated, inLongstack, lost, byV8 } = await terminateAtRandom(settings)
      const byV8Text = `V8 ended ${byV8} processes and lost ${lost} terminations, as without longstack`
      if (byV8 + lost > 0) t.log(byV8Text)
      t.deepEqual(findings, [], `seed ${seed}`)
      t.true(terminated >= COUNT)
      if (runsAll) t.true(inLongstack > 0, `none of ${terminated} hit longstack`) // few may miss it
    })
  }
}

for (const engine of ['native', 'js']) {
  test(`code terminated while it makes the first span of a process ends: ${engine}`, async (t) => {
    for (let i = 0; i < 16; i++) { // the native engine of Node 20 lost every second one
      const { stdout, stderr, signal } = await program(`
        const trace = require(${JSON.stringify(root)})
        trace.on('span', () => {})
        const code = 'for (;;) span("outer", () => span("inner", () => {}))'
        try {
          require('node:vm').runInNewContext(code, { span: trace.span }, { timeout: ${1 + i % 5} })
        } catch (error) { console.log(error.code) }
        process.exit()
      `, { env: { LONGSTACK_CAPTURE: engine }, timeout: 30_000 })
      t.is(signal, null, 'it goes on for good')
      t.is(stdout, 'ERR_SCRIPT_EXECUTION_TIMEOUT\n', stderr)
    }
  })
}

const hasOwnHooks = Number(process.versions.node.split('.')[0]) >= 24 // V8's, see installer.js

const check = `
const vm = require('node:vm')
const print = (text) => require('node:fs').writeSync(1, text + '\\n')
function afterwards () {
  setTimeout(() => {
    try { console.log('console works') } catch (error) { print('console.log threw: ' + error.message) }
    print('keys of net: ' + (Object.keys(require('node:net')).length > 10))
    for (const name of ['http', 'v8', 'worker_threads']) require('node:' + name)
    setTimeout(function later () { print(new Error('later').stack.includes('── setTimeout(1)') ? 'traced' : 'dead') }, 1)
  }, 10)
}`

for (const engine of ['native', 'js']) {
  for (const place of ['in the main script', 'in the first callback']) {
    test(`terminated code reads the first stacks of a process ${place}: ${engine}`, async (t) => {
      for (const timeout of [1, 3, 5, 8]) {
        const run = 'try { vm.runInNewContext(\'while (true) { try { null.x } catch (e) { e.stack } }\', {}, ' +
          `{ timeout: ${timeout} }) } catch {} afterwards()`
        const source = `${check}\n${place === 'in the main script' ? run : `setTimeout(() => { ${run} }, 1)`}`
        const { stdout, stderr, code } = await program(source, { env: { LONGSTACK_CAPTURE: engine } })
        t.is(stderr, '')
        t.is(code, 0)
        t.is(stdout, 'console works\nkeys of net: true\ntraced\n')
      }
    })
  }
}

test('resources made in the same callback after a timeout have the whole chain', async (t) => {
  const { stdout } = await program(`
    const vm = require('node:vm')
    setTimeout(function callback () {
      for (let i = 0; i < 20; i++) {
        const { format, limit } = { format: Error.prepareStackTrace, limit: Error.stackTraceLimit }
        try {
          vm.runInNewContext('for (let i = 0; ; i++) new F("P", "return P.resolve().then(() => " + i + ")")(P)',
            { F: Function, P: Promise }, { timeout: 2 })
        } catch {}
        if (Error.prepareStackTrace !== format || Error.stackTraceLimit !== limit) console.log('changed')
        setImmediate(function made () {
          const [, hop] = new Error('made').stack.split(/^  ── /m)
          if (!/^setImmediate [^]*callback/.test(hop)) console.log('lost', hop)
        })
      }
      setTimeout(() => console.log('end'), 5)
    }, 1)`)
  t.is(stdout, 'end\n')
})

test('promise hooks lost by Node are restored', async (t) => {
  for (const engine of ['native', 'js']) {
    // As code leaves it that is terminated inside of updatePromiseHookMode (lib/internal/async_hooks.js)
    const { stdout } = await program(`
      const { setPromiseHooks } = require('internal/test/binding').internalBinding('async_wrap')
      const lose = () => { if (${engine === 'js' || !hasOwnHooks}) setPromiseHooks() }
      async function await_ () {
        await null
        console.log(new Error('awaited').stack.split('  ── ').length)
      }
      setTimeout(() => {
        try {
          require('node:vm').runInNewContext('lose(); throw 1', { lose }, { timeout: 60_000 })
        } catch {}
        await_()
      }, 1)`, { args: ['--expose-internals', '--no-warnings'], env: { LONGSTACK_CAPTURE: engine } })
    t.is(stdout, '3\n')
  }
})

test('a span whose function is terminated ends as terminated, and the process continues', async (t) => {
  const { stdout, stderr, code } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    const vm = require('node:vm')
    const spans = []
    trace.on('span', (span) => spans.push(span))
    setTimeout(() => {
      try {
        vm.runInNewContext('span("outer", () => { span("inner", () => { while (true); }) })',
          { span: trace.span }, { timeout: 1500 })
      } catch {}
      trace.span('after', () => {})
      setTimeout(() => {
        for (const { name, status } of spans) console.log(name, status?.code, status?.message)
        console.log(trace.stats().spans.open)
        process.exit()
      }, 10)
    }, 1)`)
  t.is(stderr, '')
  t.is(code, 0)
  t.deepEqual(stdout.trim().split('\n'), [
    'inner ERROR terminated', 'outer ERROR terminated', 'after UNSET undefined', '0'
  ])
})

test('tracing restores the method of vm that it wraps', async (t) => {
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    const { Script } = require('node:vm')
    const owner = Object.getPrototypeOf(Script.prototype)
    const before = owner.runInContext
    trace.enable()
    const { name, length } = owner.runInContext
    trace.disable()
    console.log(owner.runInContext === before, name === before.name, length === before.length)
    trace.enable()
    try { new Script('throw new Error("own")', { filename: 'own.js' }).runInThisContext() } catch (error) {
      console.log(error.stack.includes('terminable-runs'), error.stack.includes('own.js:1'))
    }`, { preload: false })
  t.is(stdout, 'true true true\nfalse true\n')
})

const onUnix = process.platform === 'win32' ? test.skip : test // no signal interrupts a REPL there

for (const LONGSTACK_CAPTURE of ['native', 'js']) {
  onUnix(`repeated Ctrl-C at the REPL leaves errors and tracing intact: ${LONGSTACK_CAPTURE}`, async (t) => {
    const env = { ...process.env, LONGSTACK_CAPTURE, NODE_OPTIONS: undefined, NODE_REPL_HISTORY: '', NO_COLOR: '1' }
    const child = spawn(process.execPath, ['-r', path.join(root, 'lib', 'register.js'), '-i'], { env })
    t.teardown(() => child.kill('SIGKILL'))
    let text = ''
    /** @param {RegExp} pattern */
    const until = async (pattern) => { while (!pattern.test(text)) await once(events, 'text') }
    const events = new EventEmitter()
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (part) => {
        text += part
        events.emit('text')
      })
    }
    await until(/> $/)
    for (let i = 0; i < 3; i++) {
      text = ''
      child.stdin.write('process._rawDebug("runs"); for (;;) { try { null.x } catch (error) { error.stack } }\n')
      await until(/runs/)
      child.kill('SIGINT')
      await until(/interrupted[^]*> $/)
    }
    text = ''
    child.stdin.write('setTimeout(function later () { console.log(new Error("told").stack + " end") }, 1); 0\n')
    await until(/ end/)
    t.regex(text, /^0\n> Error: told\n {4}at Timeout\.later [^]* ── setTimeout\(1\) · \d+ ms earlier ──\n {4}at REPL\d/)
    child.stdin.end('.exit\n')
    t.deepEqual(await once(child, 'exit'), [0, null])
  })
}

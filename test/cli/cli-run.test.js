'use strict'

// longstack run: the program does not notice its parent. Exit code, signals, streams, arguments and channel
// are its own.

const test = require('ava')
const { fork, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const { folder, longstack, main } = require('../helpers/span-files')

/** @param {import('ava').ExecutionContext} t @param {string} source @param {string} [name] */
function script (t, source, name = 'app.js') {
  const to = path.join(folder(t), name)
  fs.writeFileSync(to, source)
  return to
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {Promise<{ stdout: string, stderr: string, code: number | null, signal: string | null }>}
 */
async function end (child) {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => { stdout += text })
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr += text })
  const [code, signal] = await once(child, 'close')
  return { stdout, stderr, code, signal }
}

test('the program has its arguments, streams and exit code, and long stacks', async (t) => {
  const app = script(t, `
    console.log(JSON.stringify([process.argv.slice(2), process.argv[1] === __filename, require.main === module]))
    process.stdin.on('data', (text) => setTimeout(function later () { console.error(new Error(String(text)).stack); process.exitCode = 7 }, 1))`)
  const { stdout, stderr, code } = await longstack(['run', app, '--frames', '3', '--', '-x', '--help'], { input: 'told' })
  t.deepEqual(JSON.parse(stdout), [['--frames', '3', '--', '-x', '--help'], true, true])
  t.is(code, 7)
  t.regex(stderr, /^Error: told\n {4}at Timeout\.later[^]*── setTimeout\(1\)/)
})

test('a pipe is unchanged: a write waits for the reader', async (t) => {
  if (process.platform === 'win32') {
    t.log('skipped: no shell has such pipes')
    return t.pass()
  }
  const app = script(t, "process.exitCode = require('node:fs').writeSync(1, 'x'.repeat(300_000)) === 300_000 ? 5 : 6")
  const pipeline = 'set -o pipefail; "$@" | { sleep 0.5; wc -c; }'
  const { stdout, stderr, code } = await end(spawn('bash', ['-c', pipeline, 'bash', process.execPath, main, 'run', app]))
  t.deepEqual([stdout.trim(), stderr, code], ['300000', '', 5])
})

test('a module is run like a script', async (t) => {
  const app = script(t, `
    await new Promise((resolve) => setTimeout(resolve, 1))
    console.log(new Error('told').stack, process.argv.length)`, 'app.mjs')
  const { stdout, code } = await longstack(['run', app])
  t.is(code, 0)
  t.regex(stdout, /^Error: told\n[^]*── .*\n[^]* 2\n$/)
})

test('every option is a flag, and the program sees it as its variable', async (t) => {
  const app = script(t, `
    const names = Object.keys(process.env).filter((name) => name.startsWith('LONGSTACK') && name !== 'LONGSTACK_CAPTURE')
    console.log(JSON.stringify(Object.fromEntries(names.map((name) => [name, process.env[name]]))))`)
  const given = ['--filter', 'TCP,PIPE', '--frames=7', '--depth', '5', '--internals', '--no-errors',
    '--hide', 'node_modules', '--signal', 'SIGUSR2', '--budget', '2000000']
  const { stdout, stderr } = await longstack(['run', ...given, '--', app])
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), {
    LONGSTACK: 'TCP,PIPE',
    LONGSTACK_FRAMES: '7',
    LONGSTACK_DEPTH: '5',
    LONGSTACK_INTERNALS: 'true',
    LONGSTACK_ERRORS: 'off',
    LONGSTACK_HIDE: 'node_modules',
    LONGSTACK_SIGNAL: 'SIGUSR2',
    LONGSTACK_BUDGET: '2000000'
  })
  const { rules } = require('../../lib/options')
  const { stdout: help } = await longstack(['run', '--help'])
  for (const { flag } of Object.values(rules)) t.regex(help, new RegExp(`^  --${flag}\\b`, 'm'))
})

test('flags of node itself are passed on, with quotes', async (t) => {
  const app = script(t, 'console.log(typeof gc, process.title, process.argv.length)')
  const { stdout, code } = await longstack(['run', '--node-options', '--expose-gc "--title=two words"', app, 'x'])
  t.is(code, 0)
  t.is(stdout, 'function two words 3\n')
})

test('spans go to the file of the flag, and a report reads them', async (t) => {
  const app = script(t, `
    const http = require('node:http')
    const server = http.createServer((request, response) => setTimeout(() => response.end('ok'), 5)).listen(0, () => {
      http.get({ port: server.address().port, path: '/page' }, (response) => response.resume().on('end', () => server.close()))
    })`)
  const out = path.join(path.dirname(app), 'spans.jsonl')
  const { code, stderr } = await longstack(['run', '--spans', out, app])
  t.is(code, 0, stderr)
  const { stdout } = await longstack(['report', out])
  t.regex(stdout, /^GET \/page {2}1 span/m)
  t.regex(stdout, /run \d[\d.]* %, waited \d[\d.]* %, delayed/)
})

test('an uncaught error ends the program as it would without longstack', async (t) => {
  const app = script(t, 'setTimeout(function fails () { throw new Error("no") }, 1)')
  const { code, stderr, stdout } = await longstack(['run', app])
  t.is(code, 1)
  t.is(stdout, '')
  t.regex(stderr, /Error: no\n {4}at Timeout\.fails[^]*── setTimeout/)
})

test('a missing script is reported by node', async (t) => {
  const { code, stderr } = await longstack(['run', '/nowhere/app.js'])
  t.is(code, 1)
  t.regex(stderr, /Cannot find module '\/nowhere\/app\.js'/)
})

for (const name of /** @type {NodeJS.Signals[]} */ (['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2'])) {
  test(`${name} reaches the program, which may keep running`, async (t) => {
    const app = script(t, `
      let seen = 0
      process.on('${name}', () => { seen++; setTimeout(() => { console.log('seen', seen); process.exit(5) }, 100) })
      setInterval(() => {}, 1000)
      console.log('ready')`)
    const child = spawn(process.execPath, [main, 'run', app])
    child.stdout.once('data', () => child.kill(name))
    const { stdout, code, signal } = await end(child)
    t.is(stdout, 'ready\nseen 1\n')
    t.deepEqual([code, signal], [5, null])
  })

  test(`a program ended by ${name} ends the command in the same way`, async (t) => {
    const child = spawn(process.execPath, [main, 'run', script(t, "setInterval(() => {}, 1000); console.log('ready')")])
    child.stdout.once('data', () => child.kill(name))
    t.is((await end(child)).signal, name)
  })
}

test('a program that kills itself ends the command in the same way', async (t) => {
  const child = spawn(process.execPath, [main, 'run', script(t, "process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000)")])
  t.is((await end(child)).signal, 'SIGKILL')
})

test('a forked program keeps its IPC channel', async (t) => {
  const app = script(t, "process.on('message', (text) => { process.send(text + ' back', () => process.disconnect()) })")
  const child = fork(main, ['run', app], { silent: true })
  child.send('there and')
  const [answer] = await once(child, 'message')
  t.is(answer, 'there and back')
  t.is((await end(child)).code, 0)
})

test('handles still open when the program is done are a leak, by exit code and by name', async (t) => {
  const app = script(t, `
    const net = require('node:net')
    function openServer () { net.createServer().listen(0) }
    setTimeout(openServer, 5)
    setInterval(function beat () {}, 20)
    setTimeout(() => {}, 1e6).unref()
    process.on('exit', (code) => console.log('exit', code))`)
  const { code, stdout, stderr } = await longstack(['run', '--fail-on-leak=300', app])
  t.is(code, 3)
  t.is(stdout, 'exit 3\n')
  t.regex(stderr, /^longstack: the program has done nothing for 300 ms, and does not end\.\nlongstack: 2 open in process \d+\n/)
  t.regex(stderr, /TCP server at .* · TCPSERVERWRAP\n[^]*at openServer/)
  t.regex(stderr, /timer, every 20 ms, calls beat\(\)/)
  t.notRegex(stderr, /1000000/, 'what keeps nothing alive is no leak')
})

test('--why-still-running prints once what keeps a program alive, and lets it run', async (t) => {
  const app = script(t, `
    const server = require('node:net').createServer()
    setTimeout(function openServer () { server.listen(0) }, 5)
    setTimeout(() => { console.log('still here'); server.close(); process.exitCode = 7 }, 2500)
    setInterval(function beat () {}, 20).unref()`)
  const { code, stdout, stderr } = await longstack(['run', '--why-still-running=300', app])
  t.is(code, 7)
  t.is(stdout, 'still here\n')
  t.is(stderr.match(/does not end/g)?.length, 1)
  t.regex(stderr, /^longstack: the program has done nothing for 300 ms, and does not end\.\nlongstack: 2 open in process \d+\n/)
  t.regex(stderr, /TCP server at .* · TCPSERVERWRAP\n[^]*at openServer/)
  t.notRegex(stderr, /beat/)
  const ended = await longstack(['run', '--why-still-running', script(t, 'process.exitCode = 4')])
  t.deepEqual(ended, { code: 4, signal: null, stdout: '', stderr: '' })
})

test('--why-still-running reports before --fail-on-leak ends the program', async (t) => {
  const app = script(t, "require('node:net').createServer().listen(0)")
  const { code, stderr } = await longstack(['run', '--why-still-running=200', '--fail-on-leak=2500', app])
  t.is(code, 3)
  t.regex(stderr, /nothing for 200 ms[^]*nothing for 2500 ms/)
})

const endings = {
  'sets process.exitCode': "process.on('exit', () => { process.exitCode = 0 })",
  'calls process.exit(0)': "process.on('exit', () => process.exit(0))",
  throws: "process.on('exit', () => { throw new Error('of the listener') })",
  'throws while somebody listens to uncaughtException': "process.on('uncaughtException', () => {}); process.on('exit', () => { throw new Error('of the listener') })",
  'throws what is no error': "process.on('exit', () => { throw null })",
  'was preceded by one of process.exit and reallyExit': `
    const { reallyExit } = process
    process.exit = () => { throw new Error('process.exit is not allowed') }
    process.reallyExit = () => reallyExit.call(process, 0)`,
  'flushes a file': `
    process.exitCode = 0
    process.on('exit', () => { require('node:fs').writeSync(1, 'flushed\\n'); process.exitCode = 0 })`
}

for (const [name, source] of Object.entries(endings)) {
  test(`a leak decides the exit code over a listener of exit that ${name}`, async (t) => {
    const app = script(t, `
      process.on('exit', (code) => console.log('first', code))
      ${source}
      setInterval(function leak () {}, 1000)`)
    const { code, stdout, stderr } = await longstack(['run', '--fail-on-leak=150', app])
    t.is(code, 3)
    t.is(stdout, name === 'flushes a file' ? 'first 3\nflushed\n' : 'first 3\n')
    t.regex(stderr, /calls leak\(\)/)
    if (source.includes('of the listener')) t.regex(stderr, /Error: of the listener\n {4}at process\.<anonymous>/)
  })
}

test('a program that leaks nothing has its own exit code under --fail-on-leak', async (t) => {
  for (const source of ["process.on('exit', () => { process.exitCode = 7 })", 'process.exit(7)', 'process.reallyExit(7)']) {
    t.is((await longstack(['run', '--fail-on-leak=5000', script(t, source)])).code, 7)
  }
})

test('a worker that computes is awaited; one that only waits is a leak', async (t) => {
  const app = (/** @type {string} */ rest) => script(t, `
    const { Worker, isMainThread } = require('node:worker_threads')
    if (isMainThread) return new Worker(__filename)
    const compute = () => { const end = Date.now() + 700; while (Date.now() < end); }
    compute()
    setTimeout(() => { compute(); compute(); ${rest} }, 10)`)
  t.deepEqual(await longstack(['run', '--fail-on-leak=500', app('')]), { code: 0, signal: null, stdout: '', stderr: '' })
  const { code, stderr } = await longstack(['run', '--fail-on-leak=500', app('setInterval(() => {}, 1000)')])
  t.is(code, 3)
  t.regex(stderr, /worker thread .*· WORKER/)
})

test('a program that runs for a long time and then ends has no leak', async (t) => {
  const app = script(t, `
    const end = Date.now() + 400
    while (Date.now() < end);
    let turns = 0
    setTimeout(function work () {
      const end = Date.now() + 50
      while (Date.now() < end);
      if (++turns < 10) setTimeout(work, 20)
      else console.log('done', Object.keys(process.env).filter((name) => /LEAK/.test(name)))
    }, 20)`)
  const { code, stdout, stderr } = await longstack(['run', '--fail-on-leak=250', app])
  t.is(stderr, '')
  t.is(stdout, 'done []\n')
  t.is(code, 0)
})

test('the leak check covers the main process alone, not its children and workers', async (t) => {
  const app = script(t, `
    const { fork } = require('node:child_process')
    const { Worker, isMainThread } = require('node:worker_threads')
    if (process.argv[2] === 'child' || !isMainThread) return setTimeout(() => {}, 900)
    let work = setInterval(() => setImmediate(() => {}), 20)
    let left = 2
    const over = (code) => { console.log(code); if (--left === 0) clearInterval(work) }
    fork(__filename, ['child']).on('exit', over)
    new Worker(__filename).on('exit', over)`)
  const { code, stdout, stderr } = await longstack(['run', '--fail-on-leak=300', app])
  t.is(stderr, '')
  t.is(stdout, '0\n0\n')
  t.is(code, 0)
})

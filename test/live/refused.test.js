'use strict'

// Processes that cannot be queried: the command's output, and the processes stay as they were.

const { execFileSync, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')
const { isEmulated } = require('../helpers/time-factor')

const command = path.join(root, 'lib', 'cli', 'main.js')
const isLinux = process.platform === 'linux'

/** Starts a program that prints a line, and ends it after the test. @returns a process of Node that runs */
async function start (t, source, args = [], env = {}) {
  const child = spawn(process.execPath, [...args, '-e', source],
    { env: { ...process.env, NODE_OPTIONS: '', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  child.stderr.resume()
  await once(child.stdout, 'data')
  return child
}

const why = (target) => node([command, 'why', '--no-children', String(target)])

const idle = "setInterval(() => {}, 1000); console.log('ready')"

/** Whether a process catches SIGUSR1. @param {number} pid */
function catchesSignal (pid) {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${caught}`) & 512n) !== 0n
}

if (isLinux) {
  test.serial('a stopped process is not signalled, and reported as stopped', async (t) => {
    const child = await start(t, idle)
    process.kill(child.pid, 'SIGSTOP')
    while (!/\) T /.test(fs.readFileSync(`/proc/${child.pid}/stat`, 'utf8')));
    const { stderr, code } = await why(child.pid)
    t.is(code, 1)
    t.regex(stderr, new RegExp(`^longstack: Process ${child.pid} is stopped \\(SIGSTOP\\)\\. Resume it with kill -CONT`))
    t.regex(fs.readFileSync(`/proc/${child.pid}/status`, 'utf8'), /^ShdPnd:\s*0+$/m, 'nothing waits for it')
  })

  test.serial('the read of a FIFO in a process is not interrupted', async (t) => {
    if (process.arch !== 'x64') return t.pass('calls of the kernel are known by their numbers on x64 alone')
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
    t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
    const fifo = path.join(directory, 'fifo')
    execFileSync('mkfifo', [fifo])
    const child = await start(t, `
      const file = fs.openSync(${JSON.stringify(fifo)}, 'r+')
      fs.writeSync(1, 'ready\\n')
      fs.writeSync(1, 'read ' + fs.readSync(file, Buffer.alloc(1)))`)
    while (!fs.readFileSync(`/proc/${child.pid}/syscall`, 'utf8').startsWith('0 '));
    const { stderr, code } = await why(child.pid)
    t.is(code, 1)
    t.regex(stderr, /cannot be inspected now: its main thread reads from .*fifo, and waits in the kernel/)
    fs.writeFileSync(fifo, 'x')
    const [text] = await once(child.stdout, 'data')
    t.is(String(text), 'read 1')
  })

  test.serial('the reason is one of the process\'s flags', async (t) => {
    if (isEmulated) return t.pass('the emulator catches every signal')
    const [major] = process.versions.node.split('.').map(Number)
    const flag = major < 22 ? '--experimental-permission' : '--permission'
    const child = await start(t, idle, [flag, '--allow-fs-read=*'])
    const { stderr, code } = await why(child.pid)
    t.is(code, 1)
    t.regex(stderr, /SIGUSR1: it was started with --permission/)
    t.is(child.exitCode, null)
    if (major < 22) return
    const deaf = await start(t, idle, ['--disable-sigusr1'])
    t.false(catchesSignal(deaf.pid))
    t.regex((await why(deaf.pid)).stderr, /SIGUSR1: it was started with --disable-sigusr1/)
  })

  test.serial('the process that holds the port is named', async (t) => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const child = await start(t, idle, [`--inspect-port=${server.address().port}`])
    const { stderr, code } = await why(child.pid)
    t.is(code, 1)
    t.regex(stderr, new RegExp(`process ${process.pid} listens on its port, ${server.address().port}\\.`))
  })
}

test.serial('the inspector is closed again if longstack cannot be loaded in the process', async (t) => {
  const child = await start(t, `
    process.getBuiltinModule('module').createRequire = () => () => { throw new Error('not here') }
    ${idle}
    setInterval(() => console.log(String(process.getBuiltinModule('inspector').url())), 50)`)
  const { stderr, code } = await why(child.pid)
  t.is(code, 1)
  t.regex(stderr, /not here/)
  for await (const text of child.stdout) {
    if (String(text).endsWith('undefined\n')) break
  }
  t.pass()
})

test.serial('a LONGSTACK_SOCKET that does not respond has a reason', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const socket = path.join(directory, 's')
  const child = await start(t, `
    const timer = setInterval(() => {
      if (!fs.existsSync(process.env.LONGSTACK_SOCKET)) return
      clearInterval(timer)
      fs.writeSync(1, 'ready')
      while (true);
    }, 10)`, ['-r', register], { LONGSTACK_SOCKET: socket })
  const { stderr, code } = await why(socket)
  t.is(code, 1)
  const subject = isLinux ? `Process ${child.pid}` : 'A process'
  t.regex(stderr, new RegExp(`${subject} listens on .* and does not respond: its event loop is blocked`))
  const { stdout } = await why(child.pid)
  t.regex(stdout, /has been blocked for at least [\d.]+ s\. It is running\n {4}at /)
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.regex((await why(socket)).stderr, /No process listens on .*: the one that did has ended\.\n$/)
})

const whereWatched = process.env.ENGINE === 'js' ? test.serial.skip : test.serial

whereWatched('a LONGSTACK_SOCKET that does not respond, with LONGSTACK_BLOCKED: the stack inside, without a signal', async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-test-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const socket = path.join(directory, 's')
  const release = path.join(directory, 'release')
  const child = await start(t, `
    process.on('SIGUSR1', () => console.log('signalled'))
    const timer = setInterval(function soon () {
      if (!fs.existsSync(process.env.LONGSTACK_SOCKET)) return
      clearInterval(timer)
      fs.writeSync(1, 'ready')
      for (let i = 0; i % 1000 > 0 || !fs.existsSync(${JSON.stringify(release)}); i++);
    }, 10)
    setInterval(() => {}, 1000)`, ['-r', register], { LONGSTACK_SOCKET: socket, LONGSTACK_BLOCKED: '100' })
  const note = path.join(`${socket}.longstack`, `${path.basename(fs.readlinkSync(socket))}.busy`)
  while (!fs.existsSync(note)) await new Promise((resolve) => setTimeout(resolve, 20))
  t.is(fs.statSync(note).mode & 0o777, 0o600)
  for (const target of [socket, child.pid]) {
    const { stdout, stderr, code } = await why(target)
    t.is(code, 1, stderr)
    t.regex(stdout, new RegExp(`The event loop of process ${child.pid} has been blocked for at least .*\\. It is running\n {4}at `))
    t.regex(stdout, /at .*soon [^]*── setInterval\(10\)/)
  }
  fs.writeFileSync(release, '')
  while (fs.existsSync(note)) await new Promise((resolve) => setTimeout(resolve, 20))
  t.regex((await why(socket)).stdout, /\d open/)
  t.is(child.stdout.read(), null, 'it got no signal')
})

if (isLinux) {
  test.serial('a zombie is reported as ended', async (t) => {
    const child = await start(t, "console.log(child_process.spawn('true').pid); for (;;);")
    const pid = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
    while (!/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')));
    t.is((await why(pid)).stderr, `longstack: Process ${pid} has ended.\n`)
  })

  test.serial('a process that has reset SIGUSR1 is not signalled, and not reported as starting', async (t) => {
    const child = await start(t, `process.once('SIGUSR1', () => {}).removeAllListeners('SIGUSR1'); ${idle}`)
    await new Promise((resolve) => setTimeout(resolve, 5_000))
    t.regex((await why(child.pid)).stderr, /: it does not run Node, or has reset that signal\. LONGSTACK_SOCKET/)
    t.is(child.signalCode, null)
  })
}

test.serial('PID 0 is rejected: the command\'s process group is not signalled', async (t) => {
  const source = `for (const name of ['why', 'diff', 'attach', 'profile']) {
    const { status } = child_process.spawnSync(process.execPath, [${JSON.stringify(command)}, name, '0'])
    console.log(status)
  }`
  const child = spawn(process.execPath, ['-e', source], { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  const outputs = await Promise.all([child.stdout, child.stderr].map((stream) => stream.setEncoding('utf8').toArray()))
  t.deepEqual(outputs.map((parts) => parts.join('')), ['2\n2\n2\n1\n', ''])
})

test.serial('a process that exits meanwhile is reported, and keeps its exit code', async (t) => {
  for (const ms of [0, 40, 80, 120, 160, 200, 300]) {
    const child = await start(t, `process.once('SIGUSR2', () => setTimeout(() => process.exit(7), ${ms})); ${idle}`)
    const exit = once(child, 'exit')
    child.kill('SIGUSR2')
    const { stdout, stderr, code } = await why(child.pid)
    t.deepEqual(await exit, [7, null])
    if (code === 0) t.regex(stdout, new RegExp(`^Process ${child.pid} · `))
    else t.regex(stderr, new RegExp(`^longstack: (Process ${child.pid} (has ended|ended, or closed its (inspector|connection))|There is no process ${child.pid})\\.\n$`))
  }
})

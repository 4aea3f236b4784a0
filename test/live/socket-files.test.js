'use strict'

// Files of LONGSTACK_SOCKET: foreign files stay, whatever their names and however a process ends, and
// longstack's own are removed (lib/files.js lists them).

const test = require('ava')
const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const os = require('node:os')
const path = require('node:path')
const { node, program, register, root, runsAll } = require('../helpers/run')

const main = path.join(root, 'lib', 'cli', 'main.js')
const isRoot = process.getuid?.() === 0
const NOBODY = 65534
const KILLS = runsAll ? 40 : 10

function folder (t, mode = 0o755) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'ls-'))
  fs.chmodSync(directory, mode)
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** @param {string} directory @param {string} [prefix] @returns {string[]} what is in it, with its content */
function contents (directory, prefix = '') {
  return fs.readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const name = prefix + entry.name
    const file = path.join(directory, entry.name)
    if (entry.isDirectory()) return [`${name}/`, ...contents(file, `${name}/`)]
    if (entry.isSymbolicLink()) return [`${name} -> ${fs.readlinkSync(file)}`]
    return [entry.isFile() ? `${name}: ${fs.readFileSync(file, 'utf8')}` : `${name} (socket)`]
  })
}

/**
 * Starts a program until it prints something.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {string} socket
 * @param {import('node:child_process').SpawnOptions} [options]
 */
async function start (t, source, socket, options = {}) {
  const file = path.join(folder(t), 'program.js')
  fs.writeFileSync(file, source)
  const child = spawn(process.execPath, ['-r', register, file],
    { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, LONGSTACK_SOCKET: socket }, ...options })
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr?.on('data', (text) => { stderr += text })
  await Promise.race([once(/** @type {any} */ (child.stdout), 'data'), once(child, 'exit')])
  return { child, stderr: () => stderr }
}

const waits = "console.log('ready'); setTimeout(() => {}, 60_000); process.stdin.on('data', () => process.exit())"

/** @param {import('node:child_process').ChildProcess} child */
async function end (child) {
  const exit = once(child, 'exit')
  child.stdin?.write('end\n')
  await exit
}

if (process.platform === 'linux') {
  test('too few descriptors are reported, and nothing is left behind', async (t) => {
    const directory = folder(t)
    const socket = path.join(directory, 's')
    const told = []
    for (let limit = 18; limit < 34; limit++) { // how many Node itself needs differs
      const command = `ulimit -n ${limit}; exec "${process.execPath}" -r "${register}" -e 'setTimeout(() => {}, 20)'`
      const child = spawn('sh', ['-c', command], { env: { ...process.env, LONGSTACK_SOCKET: socket } })
      let stderr = ''
      child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
      const [code] = await once(child, 'close')
      if (code !== 0) continue // Node does not start
      if (stderr !== '') told.push(stderr)
      t.deepEqual(contents(directory), [], `${limit} descriptors: ${stderr}`)
    }
    t.true(told.length > 0)
    for (const line of told) t.regex(line, /^longstack: .*\bEMFILE\b/)
    t.true(told.some((line) => line === `longstack: cannot listen on ${socket}: listen EMFILE: too many open files\n`), told.join(''))
  })

  test('an empty directory that others may enter is kept', async (t) => {
    const directory = folder(t)
    fs.mkdirSync(path.join(directory, 's.longstack'), { mode: 0o755 })
    const { stderr } = await node(['-r', register, '-e', '0'], { env: { LONGSTACK_SOCKET: path.join(directory, 's') } })
    t.regex(stderr, /others may enter the directory/)
    t.deepEqual(contents(directory), ['s.longstack/'])
  })
}

test('the program\'s files beside the socket and in its directory are kept', async (t) => {
  const directory = folder(t)
  const socket = path.join(directory, 'app')
  const { stdout } = await program(`
    const fs = require('node:fs')
    const files = ['', 'longstack/'].flatMap((part) => [process.pid, process.pid + '.0', '1'].flatMap((pid) =>
      ['log', 'heapsnapshot', 'json', '0.busy.old', '7', '0.log'].map((end) => '${socket}.' + part + pid + '.' + end)))
    for (const file of files) fs.writeFileSync(file, 'precious')
    setTimeout(() => console.log(JSON.stringify(files)), 100)`, { env: { LONGSTACK_SOCKET: socket } })
  for (const file of JSON.parse(stdout)) t.is(fs.readFileSync(file, 'utf8'), 'precious')
  t.false(fs.existsSync(socket))
  t.false(contents(directory).some((name) => name.endsWith('(socket)')))
})

test('an existing file of that name is never replaced', async (t) => {
  const directory = folder(t)
  const server = net.createServer().listen(path.join(directory, 'living'))
  t.teardown(() => server.close())
  await once(server, 'listening')
  fs.writeFileSync(path.join(directory, 'file'), 'precious')
  fs.mkdirSync(path.join(directory, 'directory'))
  fs.symlinkSync('file', path.join(directory, 'link'))
  fs.symlinkSync('nowhere', path.join(directory, 'dangling'))
  const dead = spawn(process.execPath, ['-e', `
    require('node:net').createServer().listen(${JSON.stringify(path.join(directory, 'dead'))}, () => console.log('ready'))`])
  await once(dead.stdout, 'data')
  dead.kill('SIGKILL')
  await once(dead, 'exit')
  const before = contents(directory)
  for (const name of ['living', 'file', 'directory', 'link', 'dangling', 'dead']) {
    const { stderr, code } = await program('setTimeout(() => {}, 100)', { env: { LONGSTACK_SOCKET: path.join(directory, name) } })
    t.is(code, 0)
    t.regex(stderr, /^longstack: cannot listen on .*: a file has that name\n$/, name)
    t.deepEqual(contents(directory), before, name)
  }
})

test('a path is used only if it is a directory that others cannot enter', async (t) => {
  const directory = folder(t)
  fs.mkdirSync(path.join(directory, 'open.longstack'))
  fs.chmodSync(path.join(directory, 'open.longstack'), 0o755)
  fs.writeFileSync(path.join(directory, 'file.longstack'), 'precious')
  fs.mkdirSync(path.join(directory, 'target'), 0o700)
  fs.symlinkSync('target', path.join(directory, 'link.longstack'))
  const before = contents(directory)
  for (const name of ['open', 'file', 'link']) {
    const { stderr, code } = await program('', { env: { LONGSTACK_SOCKET: path.join(directory, name) } })
    t.is(code, 0)
    t.regex(stderr, /^longstack: cannot listen on /, name)
    t.deepEqual(contents(directory), before, name)
  }
})

test('only the files of a killed process are removed by the next one', async (t) => {
  const directory = folder(t)
  const socket = path.join(directory, 'app')
  const source = `
    const { Worker, isMainThread } = require('node:worker_threads')
    if (isMainThread) for (let i = 0; i < 2; i++) new Worker(__filename)
    if (isMainThread) console.log('ready')
    setInterval(() => { for (const end = Date.now() + 30; Date.now() < end;); }, 40)
    process.stdin.on('data', () => process.exit())`
  const file = path.join(directory, 'program.js')
  fs.writeFileSync(file, source)
  fs.writeFileSync(`${socket}.1.log`, 'precious')
  const env = { ...process.env, LONGSTACK_SOCKET: socket, LONGSTACK_BLOCKED: '10' }
  const before = contents(directory)
  for (let i = 0; i < KILLS; i++) {
    const child = spawn(process.execPath, ['-r', register, file], { env, stdio: 'ignore' })
    await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 250))
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  const { child, stderr } = await start(t, waits, socket)
  const { stdout, stderr: asked } = await node([main, 'why', socket, '--json'])
  t.is(JSON.parse(stdout).processes[0].pid, child.pid, asked)
  const own = `${child.pid}.0`
  while (contents(directory).some((name) => name.endsWith('(socket)') && !name.includes(own))) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await end(child)
  t.is(stderr(), '')
  t.deepEqual(contents(directory), before)
})

test('a later process is found by the name once the first has ended', async (t) => {
  const socket = path.join(folder(t), 'app')
  const first = await start(t, waits, socket)
  const second = await start(t, waits, socket)
  await end(first.child)
  const { stdout, stderr } = await node([main, 'why', socket, '--json'])
  t.deepEqual(JSON.parse(stdout || '{}').processes?.map((/** @type {any} */ { pid }) => pid), [second.child.pid], stderr)
  await end(second.child)
  t.deepEqual(contents(path.dirname(socket)), [])
})

// What another user may try. Without root there is none.
const asRoot = isRoot && process.platform === 'linux' ? test.serial : test.serial.skip
if (!isRoot && process.env.CI) test('tests with other users need root', (t) => t.fail())
else if (!isRoot) console.log('# tests of other users are skipped: they need root')

/** Starts a program of another user's. @param {import('ava').ExecutionContext} t @param {string} source */
async function startAsNobody (t, source) {
  const directory = folder(t)
  const executable = path.join(directory, 'node') // that user may not enter the directory of this one
  fs.copyFileSync(process.execPath, executable)
  const child = spawn(executable, ['--inspect-port=0', '-e', source], { uid: NOBODY, gid: NOBODY, cwd: '/', stdio: 'pipe', env: {} })
  t.teardown(() => child.kill('SIGKILL'))
  const [text] = await once(child.stdout, 'data')
  return { child, first: String(text) }
}

/** @param {import('ava').ExecutionContext} t @param {string} name of a file in a directory of root's */
function victim (t, name) {
  const directory = folder(t, 0o700)
  fs.writeFileSync(path.join(directory, name), 'precious')
  return directory
}

asRoot('root queries another user\'s process, and gives it no file', async (t) => {
  const directory = folder(t)
  const { child } = await startAsNobody(t, `
    require('node:fs').watch('${directory}', (event, name) => console.log('made', name))
    console.log('ready')
    setInterval(() => {}, 1000)`)
  let made = ''
  child.stdout.on('data', (text) => { made += text })
  const { stdout, stderr } = await node([main, 'why', String(child.pid)], { env: { TMPDIR: directory } })
  t.regex(stdout, /\d open/, stderr)
  t.is(made, '')
})

asRoot('in a world-writable directory, another user\'s files are neither used nor removed', async (t) => {
  const directory = folder(t, 0o1777)
  const precious = victim(t, 'file')
  const socket = path.join(directory, 'app')
  await startAsNobody(t, `
    const fs = require('node:fs')
    fs.mkdirSync('${socket}.longstack', 0o700)
    fs.writeFileSync('${socket}.longstack/1.0', 'x')
    fs.symlinkSync('${precious}', '${path.join(directory, 'other')}.longstack')
    fs.symlinkSync('${precious}/file', '${path.join(directory, 'third')}')
    console.log('ready')
    setInterval(() => {}, 1000)`)
  const before = contents(directory)
  for (const name of ['app', 'other', 'third']) {
    const { stderr, code } = await program('setTimeout(() => {}, 50)', { env: { LONGSTACK_SOCKET: path.join(directory, name) } })
    t.is(code, 0)
    t.regex(stderr, /cannot listen on/, name)
  }
  t.deepEqual(contents(directory), before)
  t.deepEqual(contents(precious), ['file: precious'])
})

asRoot('another user swaps the directory for a link to root\'s files while root\'s process ends', async (t) => {
  const directory = folder(t, 0o777)
  const socket = path.join(directory, 'app')
  const { child } = await start(t, waits, socket)
  const precious = victim(t, `${child.pid}.0`)
  const names = [`${child.pid}.0`, `${child.pid}.1`, `${child.pid}.0.busy`]
  for (const name of names) fs.writeFileSync(path.join(precious, name), 'precious')
  await startAsNobody(t, `
    const fs = require('node:fs')
    fs.renameSync('${socket}.longstack', '${socket}.moved')
    fs.symlinkSync('${precious}', '${socket}.longstack')
    console.log('ready')
    setInterval(() => {}, 1000)`)
  await end(child)
  t.deepEqual(contents(precious).sort(), names.map((name) => `${name}: precious`).sort())
})

asRoot('another user cannot connect to the socket', async (t) => {
  const socket = path.join(folder(t, 0o777), 'app')
  await start(t, waits, socket)
  const { first } = await startAsNobody(t, `require('node:net').connect('${socket}')
    .on('connect', () => console.log('connected')).on('error', ({ code }) => console.log(code))`)
  t.is(first, 'EACCES\n')
})

test('a client that does not know the command\'s token gets no response', async (t) => {
  const { Meeting } = require('../../lib/ask/threads')
  const meeting = new Meeting()
  await meeting.isListening
  if (process.platform === 'linux') t.is(meeting.address.length, 108, 'a name that every Node finds')
  const { token, thread } = meeting.expect(process.pid)
  for (const word of [undefined, null, '', 'x'.repeat(32), ['a'], { length: 32 }]) {
    const stranger = net.connect(meeting.address)
    let told = ''
    stranger.on('data', (text) => { told += text }).on('error', () => {})
    stranger.write(`${JSON.stringify({ token: word, id: 1, value: 'x' })}\n`)
    await once(stranger, 'close')
    t.is(told, '')
  }
  const own = net.connect(meeting.address)
  own.write(`${JSON.stringify({ token })}\n`)
  t.is((await thread).pid, process.pid)
  own.destroy()
  meeting.close()
})

'use strict'

// Files and directories without a Node resource: descriptors from fs.open and similar calls. The system lists
// the open ones.

const test = require('ava')
const { program, root } = require('../helpers/run')

const run = process.platform === 'linux' ? test : test.skip

const PRELUDE = `
  const trace = require(${JSON.stringify(root)})
  const fs = require('node:fs'), path = require('node:path')
  const { once } = require('node:events')
  const { inspect } = require('node:util')
  const listed = () => trace.handles(['FS']).filter(({ type }) => type === 'DESCRIPTOR')
  const file = (name) => {
    fs.writeFileSync(path.join(__dirname, name), '')
    return path.join(__dirname, name)
  }
  const names = (list) => list.map(({ what, local }) => [what.split(',')[0], path.relative(__dirname, local)].join(' ')).sort().join()
`

run('files of fs.open, fs.openSync, streams and directories are listed with their paths while open', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    async function main () {
      console.log('none:' + names(listed()))
      const opened = fs.openSync(file('sync'))
      const called = await new Promise((resolve, reject) => fs.open(file('callback'), (error, fd) => error ? reject(error) : resolve(fd)))
      const stream = fs.createReadStream(file('stream'))
      await once(stream, 'open')
      const directory = fs.opendirSync(__dirname)
      const promised = await fs.promises.open(file('promises'))
      const deleted = fs.openSync(file('deleted'))
      fs.unlinkSync(path.join(__dirname, 'deleted'))
      const device = fs.openSync('/dev/null')
      await new Promise(setImmediate) // the call of fs.promises.open is over
      console.log('open:' + names(listed()))
      console.log('others:' + trace.handles(['FS']).filter(({ type }) => type !== 'DESCRIPTOR').map(({ type }) => type))
      const [why] = listed().filter(({ local }) => local.endsWith('sync'))
      console.log(JSON.stringify(why))
      console.log(why.what === 'file, descriptor ' + opened + ' at ' + why.local, String(why).includes('opened by\\n  ── fs.openSync'))
      console.log(trace.handles(['TCP']).length, trace.handles(['-DESCRIPTOR', 'FILEHANDLE']).filter(({ type }) => type === 'DESCRIPTOR').length)
      for (const fd of [opened, called, deleted, device]) fs.closeSync(fd)
      directory.closeSync()
      await promised.close()
      stream.destroy()
      await once(stream, 'close')
      console.log('closed:' + names(listed()))
    }
    main()`)
  t.is(stderr, '')
  const [none, open, others, why, words, filters, closed] = stdout.split('\n')
  t.is(none, 'none:')
  t.is(open, 'open:directory ,file callback,file deleted (deleted),file stream,file sync')
  t.is(others, 'others:FILEHANDLE')
  const { type, origin, state, opened, referenced, hint } = JSON.parse(why)
  t.deepEqual({ type, origin, state, opened, referenced, hint },
    { type: 'DESCRIPTOR', origin: 'registered', state: 'open', opened, referenced: false, hint: 'fs.close(fd)' })
  t.is(opened[0].label, 'fs.openSync')
  t.is(words, 'true true')
  t.is(filters, '0 0')
  t.is(closed, 'closed:')
})

run('growth is reported by path; files opened by a test are no leak', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const old = fs.openSync(file('old'))
    const log = file('log'), moved = file('moved')
    fs.openSync(moved)
    const before = trace.snapshot()
    for (let i = 0; i < 40; i++) fs.openSync(log)
    fs.closeSync(old)
    fs.openSync(moved) // under the number of old
    console.log(inspect(trace.diff(before)).replaceAll(__dirname, ''))
    trace.assertNoLeaks(before)`)
  t.is(stderr, '')
  t.regex(stdout, /^40 × file, at \/log · DESCRIPTOR\n {2}open, .* old, does not keep the process alive\n {2}40 more since the snapshot .*\n {2}opened by\n {2}── fs.openSync/)
  t.regex(stdout, /file, descriptor \d+ at \/moved · DESCRIPTOR\n.*\n {2}1 more since/)
  t.notRegex(stdout, /at \/old/)
})

run("longstack's own output is not listed, nor a worker's files in the main thread", async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const { Worker, isMainThread, parentPort } = require('node:worker_threads')
    async function main () {
      trace.enable({ spans: path.join(__dirname, 'spans') })
      trace.span('a', () => {})
      await new Promise((resolve) => setTimeout(resolve, 500))
      console.log(fs.existsSync(path.join(__dirname, 'spans')), '[' + names(listed()) + ']')
      const worker = new Worker(__filename)
      const [inWorker] = await once(worker, 'message')
      console.log(inWorker, names(listed()))
      process.exit()
    }
    async function work () {
      globalThis.handle = await fs.promises.open(file('worker'))
      await new Promise(setImmediate) // that call is over
      parentPort.postMessage(trace.handles(['FS']).map(({ type }) => type).join())
      setInterval(() => {}, 1e6)
    }
    if (isMainThread) main()
    else work()`)
  t.is(stderr, '')
  t.is(stdout, 'true []\nFILEHANDLE file worker\n')
})

run('the number of files examined at once is limited, and the rest is reported', async (t) => {
  const { stdout, stderr } = await program(`${PRELUDE}
    const log = file('log')
    let opened = 0
    try { for (; opened < 1100; opened++) fs.openSync(log) } catch {}
    const list = listed()
    console.log(opened, list.length, list.at(-1).what.replace(/\\d+/, 'N'), list.filter(({ local }) => local === log).length)`)
  t.is(stderr, '')
  if (!stdout.startsWith('1100 ')) return t.pass('a process may not open so many here')
  t.is(stdout, '1100 1001 descriptors from N on, not looked at 1000\n')
})

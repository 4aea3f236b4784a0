'use strict'

// longstack in threads, children and snapshots.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root, split } = require('../helpers/run')

/** @param {import('ava').ExecutionContext} t @param {Record<string, string>} files */
function folder (t, files) {
  const made = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-modes-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  for (const [name, source] of Object.entries(files)) fs.writeFileSync(path.join(made, name), source)
  return made
}

const inWorker = "setTimeout(function late () { require('node:worker_threads').parentPort.postMessage(new Error('x').stack) }, 1)"

/** @param {string} options of the worker */
const starter = (options) => `
  const { Worker } = require('node:worker_threads')
  setTimeout(function start () {
    new Worker(${JSON.stringify(inWorker)}, { eval: true, ${options} }).on('message', (stack) => console.log(stack))
  }, 1)`

test('a worker is traced, and its chain begins in the parent', async (t) => {
  const { stdout, stderr } = await node(['-r', register, '-e', starter('')])
  t.is(stderr, '')
  t.regex(stdout, /── setTimeout\(1\)/)
  t.regex(stdout, /in the parent thread[^]*at .*start/, stdout)
})

test('a worker with execArgv: [] runs as without longstack', async (t) => {
  const { stdout, stderr, code } = await node(['-r', register, '-e', starter('execArgv: []')])
  t.is(code, 0)
  t.is(stderr, '')
  t.regex(stdout, /^Error: x\n {4}at Timeout\.late/)
  t.notRegex(stdout, /──/)
})

test('a worker with execArgv: [] is traced through NODE_OPTIONS', async (t) => {
  const { stdout, stderr } = await node(['-e', starter('execArgv: []')], { env: { NODE_OPTIONS: `-r ${register}` } })
  t.is(stderr, '')
  t.regex(stdout, /── setTimeout\(1\)[^]*in the parent thread[^]*at .*start/)
})

test('workers with their own and with a shared environment are traced', async (t) => {
  for (const env of ['env: {}', "env: require('node:worker_threads').SHARE_ENV"]) {
    const { stdout, stderr } = await node(['-r', register, '-e', starter(env)])
    t.is(stderr, '')
    t.regex(stdout, /── setTimeout\(1\)/)
  }
})

test('cluster: each worker has its chains, and both end as they would without longstack', async (t) => {
  const made = folder(t, {
    'cluster.js': `
      const cluster = require('node:cluster')
      const net = require('node:net')
      if (cluster.isPrimary) {
        const worker = cluster.fork()
        worker.on('message', (message) => console.log(message))
        worker.on('listening', (address) => net.connect(address.port, '127.0.0.1').resume().on('error', () => {}))
        worker.on('exit', (code) => console.log('exit', code))
      } else {
        const server = net.createServer(function accepted (socket) {
          setTimeout(function answer () {
            process.send(new Error('x').stack, () => { socket.destroy(); server.close(() => process.disconnect()) })
          }, 1)
        })
        server.listen(0, '127.0.0.1')
      }`
  })
  const { stdout, stderr, code } = await node(['-r', register, path.join(made, 'cluster.js')])
  t.is(code, 0, stderr)
  t.is(stderr, '')
  t.regex(stdout, /Error: x\n {4}at .*answer[^]* {2}── setTimeout\(1\) .*\n {4}at accepted/, stdout)
  t.regex(stdout, /exit 0\n$/)
})

test('a forked child is traced as well', async (t) => {
  const made = folder(t, {
    'parent.js': "require('node:child_process').fork(require('node:path').join(__dirname, 'child.js'))",
    'child.js': "setTimeout(() => console.log(new Error('x').stack), 1)"
  })
  const { stdout, stderr } = await node(['-r', register, path.join(made, 'parent.js')])
  t.is(stderr, '')
  t.deepEqual(split(stdout).hops.map(({ title }) => title.split(' ·', 1)[0]), ['setTimeout(1)', 'fork(child.js)'])
})

test('node --test: same results, and failures have their chain', async (t) => {
  const made = folder(t, {
    'some.test.js': `
      const test = require('node:test')
      test('good', async () => { await new Promise((resolve) => setTimeout(resolve, 1)) })
      test('bad', (t, done) => { setTimeout(function later () { setImmediate(() => done(new Error('x'))) }, 1) })`
  })
  const args = ['--test', '--test-reporter=tap', path.join(made, 'some.test.js')]
  const [bare, traced] = await Promise.all([node(args), node(['-r', register, ...args])])
  const results = (/** @type {string} */ text) => text.split('\n').filter((line) => /^\s*(?:not )?ok |^# (?:tests|pass|fail|cancelled|skipped) /.test(line))
  t.true(results(bare.stdout).length >= 6, bare.stdout)
  t.deepEqual(results(traced.stdout), results(bare.stdout))
  t.is(traced.code, bare.code)
  t.is(traced.code, 1)
  t.is(traced.stderr, bare.stderr)
})

test('-r works when a start-up snapshot is built, and when it runs', async (t) => {
  const made = folder(t, {
    'entry.js': `
      require('node:v8').startupSnapshot.setDeserializeMainFunction(() => {
        setTimeout(function outer () { console.log(new Error('x').stack) }, 1)
      })`
  })
  const blob = path.join(made, 'snapshot.blob')
  const built = await node(['-r', register, '--snapshot-blob', blob, '--build-snapshot', path.join(made, 'entry.js')])
  t.is(built.code, 0, built.stderr)
  const run = await node(['-r', register, '--snapshot-blob', blob])
  t.is(run.code, 0, run.stderr)
  t.regex(run.stdout, /── setTimeout\(1\)/)
})

test('enabled inside a snapshot, longstack works in the program that starts from it', async (t) => {
  // In a snapshot's entry, require knows Node's own modules only: bundlers put the rest into the file, as
  // this does.
  const made = folder(t, {
    'entry.js': `
      const { readFileSync } = require('node:fs')
      const path = require('node:path')
      const { compileFunction } = require('node:vm')
      const cache = {}
      function load (file) {
        const filename = file.endsWith('.js') ? file : file + '.js'
        if (cache[filename]) return cache[filename].exports
        const module = cache[filename] = { exports: {} }
        const local = (id) => id.startsWith('.') ? load(path.resolve(path.dirname(filename), id)) : require(id)
        compileFunction(readFileSync(filename, 'utf8'), ['module', 'exports', 'require', '__filename', '__dirname'], { filename })(
          module, module.exports, local, filename, path.dirname(filename))
        return module.exports
      }
      const trace = load(${JSON.stringify(path.join(root, 'index.js'))})
      trace.enable(); trace.disable(); trace.enable()
      Promise.resolve().then(() => {})
      require('node:v8').startupSnapshot.setDeserializeMainFunction(() => {
        setTimeout(function outer () { setImmediate(() => { console.log(new Error('x').stack); console.log(trace.enabled) }) }, 1)
      })`
  })
  const blob = path.join(made, 'snapshot.blob')
  const built = await node(['--snapshot-blob', blob, '--build-snapshot', path.join(made, 'entry.js')])
  t.is(built.code, 0, built.stderr)
  const { stdout, stderr, code } = await node(['--snapshot-blob', blob])
  t.is(code, 0, stderr)
  t.regex(stdout, /Error: x[^]*── setImmediate[^]*at .*outer[^]*── setTimeout\(1\)/)
  t.regex(stdout, /true\n$/)
})

'use strict'

// Modules for queries are loaded completely or not at all, and need no file after the first callback.

const test = require('ava')
const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const maps = require('../helpers/maps')
const { node, root } = require('../helpers/run')

const MAX_DESCRIPTORS = 128
const stackSizes = [200, 300, 500, 984]

/**
 * Runs a program with few descriptors.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {Record<string, string>} [env]
 */
function withFewDescriptors (t, source, env = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-loading-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'program.js')
  fs.writeFileSync(file, `
    const trace = require(${JSON.stringify(root)})
    const fs = require('node:fs')
    const exhaust = () => { for (;;) fs.openSync('/dev/null') }
    ${source}`)
  const inherited = Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name))
  const command = `ulimit -n ${MAX_DESCRIPTORS}; exec "$0" "$@"`
  const args = ['-c', command, process.execPath, '-r', path.join(root, 'lib', 'register.js'), file]
  return spawnSync('sh', args, { encoding: 'utf8', env: { ...Object.fromEntries(inherited), ...env } })
}

const onUnix = process.platform === 'win32' ? test.skip : test

for (const LONGSTACK_CAPTURE of ['native', 'js']) {
  onUnix(`no descriptor is left: a signal prints its report, all queries work (${LONGSTACK_CAPTURE})`, (t) => {
    const { status, stdout, stderr } = withFewDescriptors(t, `
      setTimeout(() => { try { exhaust() } catch {} process.kill(process.pid, 'SIGUSR2') }, 20)
      setTimeout(() => {
        trace.span('off', () => console.log('span ran'))
        for (const name of ['stack', 'chain', 'handles', 'stats', 'doctor', 'current']) String(trace[name]())
        console.log(trace.why(process).constructor.name)
      }, 100)
      setTimeout(() => console.log('goes on'), 200)`.replace('trace.why(process)', 'trace.why(setTimeout(() => {}, 1))'),
    { LONGSTACK_SIGNAL: 'SIGUSR2', LONGSTACK_CAPTURE })
    t.is(status, 0, stderr)
    t.regex(stdout, /^span ran\n.*\ngoes on\n$/)
    t.regex(stderr, /clearTimeout\(timer\)/)
  })

  onUnix(`no descriptor is left: a handler is called, the error is the program's (${LONGSTACK_CAPTURE})`, (t) => {
    const { status, stdout, stderr } = withFewDescriptors(t, `
      trace.onError((error) => { console.log('asked', error.code); return false })
      setTimeout(exhaust, 20)`, { LONGSTACK_CAPTURE })
    t.is(status, 1)
    t.is(stdout, 'asked EMFILE\n')
    t.regex(stderr, /Error: EMFILE: too many open files, open '\/dev\/null'/)
  })
}

onUnix('no descriptor is left in the main script: longstack names what it cannot load, and loads it later', (t) => {
  const { status, stdout, stderr } = withFewDescriptors(t, `
    const descriptors = []
    try { for (;;) descriptors.push(fs.openSync('/dev/null')) } catch {}
    trace.span('off', () => fs.writeSync(1, 'span ran\\n'))
    let code
    try { trace.stats() } catch (error) { code = error.code }
    descriptors.forEach((descriptor) => fs.closeSync(descriptor))
    console.log(code === undefined || code === 'ERR_LONGSTACK_NOT_AVAILABLE', trace.stats().enabled)`)
  t.is(status, 0, stderr)
  t.is(stdout, 'span ran\ntrue true\n')
})

/**
 * Copies what a process loads of longstack.
 * @param {import('ava').ExecutionContext} t
 * @returns {string} the folder
 */
function copy (t) {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-copy-')))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  for (const name of ['lib', 'report', 'index.js', 'package.json', 'native/prebuilds']) {
    const from = path.join(root, name)
    const options = { recursive: true, preserveTimestamps: true }
    if (fs.existsSync(from)) fs.cpSync(from, path.join(folder, name), options)
  }
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  return folder
}

test('without the start-up bundle, terminated code leaves no module half-loaded', async (t) => {
  const folder = copy(t)
  fs.rmSync(path.join(folder, 'lib', 'start', 'bundle'), { force: true })
  const register = path.join(folder, 'lib', 'register.js')
  for (let timeout = 1; timeout <= 12; timeout++) {
    const { stdout, stderr, code } = await node(['-r', register, '-e', `
      const trace = require(${JSON.stringify(folder)})
      const read = (error) => error.stack + trace.chain(error) + trace.why(error) + trace.stats() + trace.handles()
      try {
        require('node:vm').runInNewContext('for (;;) read(new Error("inside"))', { read }, { timeout: ${timeout} })
      } catch {}
      setTimeout(() => {
        read(new Error('after'))
        console.log(new Error('after').stack.includes('── setTimeout(2)'))
      }, 2)`])
    t.deepEqual({ stdout, stderr, code }, { stdout: 'true\n', stderr: '', code: 0 }, `${timeout} ms`)
  }
})

test('files replaced while the process runs are not mixed with those already loaded', async (t) => {
  const folder = copy(t)
  const made = spawnSync(process.execPath, [path.join(folder, 'lib', 'start', 'build.js')], { encoding: 'utf8' })
  t.is(made.status, 0, made.stderr)
  fs.writeFileSync(path.join(folder, 'program.js'), `
    const fs = require('node:fs')
    const trace = require('.')
    setTimeout(() => {
      fs.rmSync(__dirname + '/lib', { recursive: true })
      fs.unlinkSync(__dirname + '/node_modules')
      setTimeout(() => {
        for (const name of ['stack', 'chain', 'handles', 'stats', 'doctor', 'current']) String(trace[name]())
        console.log(trace.why(setTimeout(() => {}, 1)).type)
        trace.on('span', () => {})
        trace.span('on', () => {})
        console.log(new Error('read').stack.includes('── setTimeout(2)'))
      }, 2)
    }, 1)`)
  const args = ['-r', path.join(folder, 'lib', 'register.js'), path.join(folder, 'program.js')]
  const { stdout, stderr, code } = await node(args, { cwd: folder })
  t.is(stderr, '')
  t.is(code, 0)
  t.is(stdout, 'Timeout\ntrue\n')
})

for (const LONGSTACK_CAPTURE of ['native', 'js']) {
  test(`stacks can be read with the stack nearly full: ${LONGSTACK_CAPTURE}`, async (t) => {
    const source = `
      function down () {
        const error = new Error('deep')
        let below
        try { below = down() } catch {}
        try { error.stack } catch {}
        return below
      }
      for (const first of [true, false]) {
        if (first) new Error('warm').stack
        down()
      }
      setTimeout(() => { down(); console.log('survived', new Error('x').stack.includes('── setTimeout')) }, 1)`
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-deep-'))
    t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
    const file = path.join(folder, 'deep.js')
    fs.writeFileSync(file, source)
    for (const size of stackSizes) {
      const args = [`--stack-size=${size}`, '-r', path.join(root, 'lib', 'register.js'), file]
      const { stdout, stderr, code } = await node(args, { env: { LONGSTACK_CAPTURE } })
      t.is(code, 0, `${size}: ${stderr.slice(0, 500)}`)
      t.is(stdout, 'survived true\n')
    }
  })
}

/**
 * Runs a program that has a source map, by its file main.js.
 * @param {import('ava').ExecutionContext} t
 * @param {string} source of main.js
 */
function withMap (t, source) {
  const { code, map } = maps.compile({ after: '\nexport const make = () => new Error("mapped")\n' })
  const folder = maps.folder({ 'program.js': code + maps.inline(map), 'main.js': source })
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  return node(['-r', path.join(root, 'lib', 'register.js'), path.join(folder, 'main.js')])
}

test('mapping code is loaded without Node\'s loader: no program sees it', async (t) => {
  const { stdout, stderr } = await withMap(t, `
    const Module = require('node:module')
    const { make } = require('./program.js')
    const loaded = []
    const load = Module._load
    Module._load = function (id) {
      loaded.push(id)
      return Reflect.apply(load, this, arguments)
    }
    require('node:diagnostics_channel').subscribe('tracing:module.require:start', ({ id }) => loaded.push(id))
    loaded.length = 0
    setTimeout(() => console.log(/app\\.ts:\\d+/.test(make().stack), loaded.join()), 1)
  `)
  t.is(stderr, '')
  t.regex(stdout, /^true $/m)
})

test('positions are mapped although code was terminated while mapping the first', async (t) => {
  for (const timeout of [1, 3, 6, 12]) {
    const { stdout, stderr } = await withMap(t, `
      const { make } = require('./program.js')
      setTimeout(() => {
        try {
          require('node:vm').runInNewContext('for (;;) make().stack', { make }, { timeout: ${timeout} })
        } catch {}
        setTimeout(() => console.log('mapped', /app\\.ts:\\d+/.test(make().stack)), 1)
      }, 1)`)
    t.is(stderr, '')
    t.regex(stdout, /^mapped true$/m)
  }
})

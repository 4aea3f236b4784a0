'use strict'

// Ways to run Node: longstack works, or does less and reports that in one line.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { compile } = require('../helpers/maps')
const { node, register, root, split, withoutHops } = require('../helpers/run')

const [major] = process.versions.node.split('.').map(Number)

const chain = `
  setTimeout(function outer () {
    setImmediate(function inner () { console.log(new Error('x').stack) })
  }, 1)
`

/** @param {import('ava').ExecutionContext} t */
function folder (t) {
  const made = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-modes-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  return made
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source
 * @param {string} [name]
 * @returns {string} the file
 */
function write (t, source, name = 'program.js') {
  const file = path.join(folder(t), name)
  fs.writeFileSync(file, source)
  return file
}

/** @param {import('ava').ExecutionContext} t @param {string} stack */
function whole (t, stack) {
  const { head, hops } = split(stack)
  t.regex(head, /^Error: x\n {4}at .*inner/, stack)
  t.regex(hops[0]?.title ?? '', /^setImmediate/, stack)
  t.regex(hops[0].frames, /at .*outer/, stack)
  t.regex(hops[1]?.title ?? '', /^setTimeout\(1\)/, stack)
}

/** What longstack itself says. @param {string} stderr */
const says = (stderr) => stderr.split('\n').filter((line) => line.startsWith('longstack'))

const permission = major === 20 ? '--experimental-permission' : '--permission'

for (const args of [
  ['--frozen-intrinsics'],
  [permission, '--allow-fs-read=*'],
  ['--disallow-code-generation-from-strings'],
  ['--stack-size=200'],
  ['--disable-proto=throw'],
  ['--disable-proto=delete'],
  ['--no-async-stack-traces'],
  ['--preserve-symlinks', '--preserve-symlinks-main'],
  ['--jitless'],
  ['--no-addons'],
  ['--pending-deprecation', '--throw-deprecation'],
  ...(major >= 24 ? [['--no-async-context-frame']] : major === 22 ? [['--experimental-async-context-frame']] : [])
]) {
  test(`node ${args.join(' ')}`, async (t) => {
    const file = write(t, chain)
    const bare = await node([...args, file])
    const traced = await node([...args, '-r', register, file])
    whole(t, traced.stdout)
    t.is(traced.code, 0)
    t.is(withoutHops(traced.stdout), bare.stdout)
    t.is(anonymous(traced.stderr), anonymous(bare.stderr), 'no line more than without')
  })
}

test('node --stack-trace-limit=2: frames of hops count', async (t) => {
  const file = write(t, chain)
  const bare = await node(['--stack-trace-limit=2', file])
  for (const limit of [2, 3]) {
    const traced = await node([`--stack-trace-limit=${limit}`, '-r', register, file])
    const { hops } = split(traced.stdout)
    t.deepEqual(hops.map(({ title }) => title.split(' · ')[0]), limit === 2 ? [] : ['setImmediate'], traced.stdout)
    if (limit === 2) t.deepEqual([traced.stdout, traced.code], [bare.stdout, 0])
  }
})

/** Node's own warnings carry the process id. @param {string} text */
const anonymous = (text) => text.replace(/\(node:\d+\)/g, '(node)')

test('enabled too late for frozen intrinsics: one line, and trace.chain still works', async (t) => {
  const file = write(t, `
    const trace = require(${JSON.stringify(root)})
    trace.enable(); trace.disable(); trace.enable()
    setTimeout(() => {
      const error = new Error('x')
      console.log(error.stack.includes('──'), trace.stack(error).includes('setTimeout(1)'), trace.chain(error).length)
    }, 1)`)
  const { stdout, stderr, code } = await node(['--frozen-intrinsics', file])
  t.is(stdout, 'false true 1\n')
  t.is(says(stderr).length, 1)
  t.regex(says(stderr)[0], /Error\.prepareStackTrace cannot be set/)
  t.is(code, 0)
})

test('--permission: if maps may not be read, frames stay unmapped', async (t) => {
  const { code, map } = compile()
  const file = write(t, `${code}//# sourceMappingURL=program.map\n`)
  fs.writeFileSync(path.join(path.dirname(file), 'program.map'), JSON.stringify(map))
  const allowed = [`--allow-fs-read=${root}/*`, `--allow-fs-read=${file}`]
  const { stdout, stderr, code: exit } = await node([permission, ...allowed, '-r', register, file])
  t.is(exit, 0, stderr)
  t.deepEqual(says(stderr), [])
  t.regex(split(stdout).hops[1].frames, /program\.js:\d+/)
})

for (const mode of ['strict', 'warn', 'none', 'throw', 'warn-with-error-code']) {
  for (const [what, { reason = "new Error('x')", before = '' }] of Object.entries({
    'an error': {},
    'no error': { reason: '7' },
    'a listener': { before: "process.on('unhandledRejection', (reason) => console.log('heard', reason.message))" },
    'an uncaughtException listener': { before: "process.on('uncaughtException', (error, origin) => console.log('heard', error.message, origin))" }
  })) {
    test(`--unhandled-rejections=${mode} with ${what}`, async (t) => {
      // One timer at a time: two that are due together change Node's own frames.
      const file = write(t, `${before}
        setTimeout(() => { setTimeout(() => console.log('goes on'), 50); Promise.reject(${reason}) }, 1)`)
      const args = [`--unhandled-rejections=${mode}`]
      const [bare, traced] = await Promise.all([node([...args, file]), node([...args, '-r', register, file])])
      t.is(traced.code, bare.code)
      t.is(traced.stdout, bare.stdout)
      t.is(anonymous(withoutHops(traced.stderr)), anonymous(bare.stderr))
      if (what === 'an error' && mode !== 'none') t.regex(traced.stderr, /── setTimeout\(1\)/)
    })
  }
}

test('--stack-size=200 and a hundred caught overflows: stacks are long right afterwards', async (t) => {
  const file = write(t, `
    const dive = () => { new Promise(() => {}); return dive() + 1 }
    let caught = 0
    const limit = Error.stackTraceLimit
    const formatter = Error.prepareStackTrace
    setTimeout(function outer () {
      for (let i = 0; i < 100; i++) try { dive() } catch (error) { if (error instanceof RangeError && typeof error.stack === 'string') caught++ }
      setImmediate(function inner () {
        console.log(new Error('x').stack)
        console.log('caught', caught, Error.stackTraceLimit === limit, Error.prepareStackTrace === formatter)
      })
    }, 1)`)
  const { stdout, stderr, code } = await node(['--stack-size=200', '-r', register, file])
  t.is(code, 0, stderr)
  whole(t, stdout)
  t.regex(stdout, /caught 100 true true\n$/)
  // Node's own word, bare too, where the stack ends just below its callback for rejections.
  t.is(stderr.replace(/Exception in PromiseRejectCallback:\n[^]*?RangeError: Maximum call stack size exceeded\n\n?/g, ''), '')
})

test('--abort-on-uncaught-exception aborts as before', async (t) => {
  const file = write(t, "process.on('uncaughtException', () => {}); setTimeout(() => { throw new Error('x') }, 1)")
  const args = ['--abort-on-uncaught-exception', file]
  const [bare, traced] = await Promise.all([node(args, { cwd: path.dirname(file) }), node(['-r', register, ...args], { cwd: path.dirname(file) })])
  t.truthy(bare.signal)
  t.is(traced.signal, bare.signal)
  t.is(traced.code, bare.code)
  t.is(traced.stdout, '')
})

test('programs of -e, -p and stdin are traced', async (t) => {
  whole(t, (await node(['-r', register, '-e', chain])).stdout)
  whole(t, (await node(['-r', register, '-'], { input: chain })).stdout)
  whole(t, (await node(['-r', register], { input: chain })).stdout)
  whole(t, (await node(['-r', register, '--input-type=module', '-e', chain])).stdout)
  const printed = await node(['-r', register, '-p', '6 * 7'])
  t.deepEqual(printed, { stdout: '42\n', stderr: '', code: 0, signal: null })
})

test('node --check, --version and --help work as usual', async (t) => {
  t.deepEqual(await node(['-r', register, '--check', write(t, chain)]), { stdout: '', stderr: '', code: 0, signal: null })
  t.is((await node(['-r', register, '--version'])).stdout, `${process.version}\n`)
})

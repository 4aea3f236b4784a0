'use strict'

// Files: rotation, disk faults, ends of the process, several writers.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { drive, folder, numbers, prelude, read, records } = require('../helpers/sinks')

const onLinux = process.platform === 'linux' ? test : test.skip

/**
 * All files of a folder, and that each span is there once.
 * @param {import('ava').ExecutionContext} t
 * @param {string} dir
 * @param {number} count
 */
function complete (t, dir, count) {
  const all = fs.readdirSync(dir).flatMap((name) => numbers(read(path.join(dir, name)))).sort((a, b) => a - b)
  t.deepEqual(all, Array.from({ length: count }, (_, i) => i))
}

test('rotations under load lose and tear nothing', async (t) => {
  const dir = folder(t)
  const { told, code, stderr } = await drive(`
    const dir = ${JSON.stringify(dir)}
    const out = sinks(dir + '/spans.jsonl')
    let i = 0
    const load = setInterval(() => { for (let j = 0; j < 50; j++) out.write(span(i++, { attributes: { text: 'x'.repeat(i * 37 % 3000) } })) }, 1)
    for (let rotations = 0; rotations < 3; rotations++) {
      await until(() => fs.existsSync(dir + '/spans.jsonl'))
      fs.renameSync(dir + '/spans.jsonl', dir + '/spans.' + rotations)
    }
    await until(() => fs.existsSync(dir + '/spans.jsonl'))
    clearInterval(load)
    tell({ i, stats: out.stats(), warned, fds: descriptors('spans') })
    out.close()`)
  t.is(code, 0, stderr)
  const [{ i, stats, warned, fds }] = told
  t.true(i > 500, `${i} spans`)
  t.is(stats.written, i)
  t.is(stats.dropped, 0)
  t.deepEqual(warned, [])
  if (process.platform === 'linux') t.is(fds.length, 1, 'old files are closed')
  complete(t, dir, i)
})

test('if a file cannot be reopened, spans go to the old one until the new one can be opened', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const dir = ${JSON.stringify(dir)}
    fs.mkdirSync(dir + '/logs')
    const out = sinks(dir + '/logs/spans.jsonl')
    out.write(span(0))
    fs.renameSync(dir + '/logs', dir + '/old')
    await wait(1100)
    out.write(span(1))
    const during = out.stats()
    fs.mkdirSync(dir + '/logs')
    await until(() => fs.existsSync(dir + '/logs/spans.jsonl'))
    out.write(span(2))
    tell({ during, after: out.stats(), warned })`)
  t.is(code, 0)
  t.deepEqual(numbers(read(path.join(dir, 'old', 'spans.jsonl'))), [0, 1])
  t.deepEqual(numbers(read(path.join(dir, 'logs', 'spans.jsonl'))), [2])
  const [{ during, after, warned }] = told
  t.is(during.outputs[0].fault, 'its directory does not exist (ENOENT)')
  t.is(after.outputs[0].fault, undefined)
  t.is(warned.length, 1)
  t.regex(warned[0][1], /logs\/spans\.jsonl: its directory does not exist \(ENOENT\)\. Writing to the renamed file until the path can be reopened/)
})

test('a vanished folder is reported once; spans wait, and are written when it is back', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const dir = ${JSON.stringify(path.join(dir, 'logs'))}
    fs.mkdirSync(dir)
    const out = sinks(dir + '/spans.jsonl')
    out.write(span(0))
    fs.rmSync(dir, { recursive: true })
    await wait(1100)
    for (let i = 1; i < 100; i++) out.write(span(i))
    await wait(1100)
    const during = out.stats()
    fs.mkdirSync(dir)
    await until(() => out.stats().outputs[0].fault === undefined)
    out.write(span(100))
    tell({ during, after: out.stats(), warned })`)
  t.is(code, 0)
  const [{ during, after, warned }] = told
  t.is(during.written, 1)
  t.is(after.written, 101)
  t.deepEqual(warned.map(([code]) => code), ['SPANS_ENOENT'])
  t.deepEqual(numbers(read(path.join(dir, 'logs', 'spans.jsonl'))), Array.from({ length: 100 }, (_, i) => i + 1))
})

/** @type {Array<[name: string, to: string, code: string, before?: string]>} */
const faults = [
  ['a full disk', '/dev/full', 'ENOSPC'],
  ['a missing folder', 'DIR/none/spans.jsonl', 'ENOENT'],
  ['a folder', 'DIR', 'EISDIR'],
  ['a file as folder', 'DIR/file/spans.jsonl', 'ENOTDIR', "fs.writeFileSync(dir + '/file', '')"],
  ['a link to itself', 'DIR/link', 'ELOOP', "fs.symlinkSync(dir + '/link', dir + '/link')"],
  ['a FIFO without a reader', 'DIR/fifo', 'EPIPE', "require('node:child_process').execFileSync('mkfifo', [dir + '/fifo'])"],
  ['a file that may not be written to', 'DIR/mine', 'EACCES', "fs.writeFileSync(dir + '/mine', '', { mode: 0o400 }); if (process.getuid() === 0) process.setuid(65534)"],
  ['no descriptor left', 'DIR/spans.jsonl', 'EMFILE', "try { for (;;) fs.openSync('/dev/null') } catch {}"]
]

for (const [name, to, code, before = ''] of faults) {
  onLinux(`${name} is reported once, and the program runs on`, async (t) => {
    const dir = folder(t)
    fs.chmodSync(dir, 0o755)
    const args = code === 'EMFILE' ? { args: ['-r', limitFiles(dir)] } : {}
    const { told, ...end } = await drive(`
      const dir = ${JSON.stringify(dir)}
      require(${JSON.stringify(path.resolve(__dirname, '..', '..', 'lib/sinks/file'))})
      ${before}
      const out = sinks(${JSON.stringify(to)}.replace('DIR', dir))
      for (let i = 0; i < 3000; i++) out.write(span(i, { attributes: { text: 'x'.repeat(1000) } }))
      await wait(1200)
      out.write(span(3000))
      out.flush()
      const stats = out.stats()
      out.close()
      tell({ warned, stats, after: out.stats() })
      process.exitCode = 7`, args)
    t.is(end.code, 7)
    t.is(end.stdout, '')
    const [{ warned, stats, after }] = told
    t.is(warned.length, 1)
    t.is(warned[0][0], `SPANS_${code}`)
    t.regex(warned[0][1], /^spans cannot be written to .*: .* \([A-Z]+\)\. Up to 1 MiB of them wait until it can be written to; more are dropped\.$/)
    t.is(stats.written, 0)
    t.true(stats.dropped > 1500 && stats.dropped < 2700, `${stats.dropped} dropped, the rest waits`)
    t.is(after.dropped, 3001, 'every one is counted in the end')
    t.truthy(stats.outputs[0].fault)
  })
}

/** A limit that Node does not raise again. @param {string} dir @returns {string} a module to preload */
function limitFiles (dir) {
  const file = path.join(dir, 'limit.js')
  fs.writeFileSync(file, "require('node:child_process').execFileSync('prlimit', ['--pid=' + process.pid, '--nofile=64:64'])")
  return file
}

onLinux('a file at its maximum size continues once it may grow again', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const { execFileSync } = require('node:child_process')
    const limit = (size) => execFileSync('prlimit', ['--pid=' + process.pid, '--fsize=' + size])
    limit('5000:')
    const out = sinks(${JSON.stringify(`${dir}/spans.jsonl`)})
    for (let i = 0; i < 40; i++) out.write(span(i, { attributes: { text: 'x'.repeat(300) } }))
    const during = out.stats()
    limit('unlimited:')
    await until(() => out.stats().outputs[0].fault === undefined)
    out.write(span(40))
    tell({ during, after: out.stats(), warned })`)
  t.is(code, 0)
  const [{ during, after, warned }] = told
  t.true(during.written > 5 && during.written < 20)
  t.deepEqual([after.written, after.dropped], [41, 0])
  t.deepEqual(warned.map(([code]) => code), ['SPANS_EFBIG'])
  complete(t, dir, 41)
})

onLinux('a line cut by a rotation is whole in the next file', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const dir = ${JSON.stringify(dir)}
    require('node:child_process').execFileSync('prlimit', ['--pid=' + process.pid, '--fsize=5000:'])
    const out = sinks(dir + '/spans.jsonl')
    let i = 0
    while (out.stats().dropped === 0 && out.stats().outputs[0].fault === undefined) out.write(span(i++, { attributes: { text: 'x'.repeat(300) } }))
    out.write(span(i++))
    fs.renameSync(dir + '/spans.jsonl', dir + '/old')
    await wait(1100)
    out.write(span(i++))
    tell({ i, stats: out.stats() })`)
  t.is(code, 0)
  const [{ i, stats }] = told
  t.deepEqual([stats.written, stats.dropped, stats.outputs[0].fault], [i, 0, undefined])
  const lines = fs.readFileSync(path.join(dir, 'old'), 'utf8').split('\n')
  t.is(fs.statSync(path.join(dir, 'old')).size, 5000)
  t.throws(() => JSON.parse(/** @type {string} */ (lines.pop())), undefined, 'the cut one')
  const rest = numbers(read(path.join(dir, 'spans.jsonl')))
  t.deepEqual([...numbers(records(lines.join('\n'))), ...rest], Array.from({ length: i }, (_, n) => n))
  t.is(rest.length, 3)
})

for (const ms of [0, 1100]) {
  onLinux(`a descriptor closed by the program and reused is never written to, after ${ms} ms`, async (t) => {
    const dir = folder(t)
    const { told, code } = await drive(`
      const dir = ${JSON.stringify(dir)}
      const out = sinks(dir + '/spans.jsonl')
      out.write(span(0))
      await wait(5)
      const [fd] = descriptors('spans.jsonl')
      fs.closeSync(fd)
      const mine = fs.openSync(dir + '/mine', 'w')
      await wait(${ms})
      out.write(span(1))
      await wait(5)
      out.write(span(2))
      out.close()
      fs.writeSync(mine, 'my own')
      tell({ same: mine === fd, warned, stats: out.stats() })`)
    t.is(code, 0)
    t.deepEqual(told, [{ same: true, warned: [], stats: told[0].stats }])
    t.is(fs.readFileSync(path.join(dir, 'mine'), 'utf8'), 'my own')
    t.deepEqual(numbers(read(path.join(dir, 'spans.jsonl'))), [0, 1, 2])
  })
}

onLinux('waiting lines are not written to a reused descriptor either', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const dir = ${JSON.stringify(dir)}
    const { execFileSync } = require('node:child_process')
    const limit = (size) => execFileSync('prlimit', ['--pid=' + process.pid, '--fsize=' + size])
    limit('1000:')
    const out = sinks(dir + '/spans.jsonl')
    let i = 0
    while (out.stats().outputs[0].fault === undefined) out.write(span(i++, { attributes: { text: 'x'.repeat(300) } }))
    const [fd] = descriptors('spans.jsonl')
    fs.closeSync(fd)
    const mine = fs.openSync(dir + '/mine', 'w')
    limit('unlimited:')
    await until(() => out.stats().outputs[0].fault === undefined)
    tell({ i, same: mine === fd, size: fs.fstatSync(mine).size, stats: out.stats() })`)
  t.is(code, 0)
  const [{ i, same, size, stats }] = told
  t.deepEqual([same, size, stats.written, stats.dropped], [true, 0, i, 0])
  const lines = fs.readFileSync(path.join(dir, 'spans.jsonl'), 'utf8').split('\n')
  const torn = lines.findIndex((line) => line.startsWith('{"traceId"') && !line.endsWith('}'))
  t.deepEqual(numbers(records(lines.filter((_, n) => n !== torn).join('\n'))), Array.from({ length: i }, (_, n) => n),
    'what was cut is whole behind it')
})

/** @type {Array<[name: string, before: string, after: string]>} */
const beginnings = [
  ['a line that another process could not end is ended', '{}\n{"traceId":"12', '{}\n{"traceId":"12\n'],
  ['a file that ends with a line goes on', '{}\n', '{}\n'],
  ['an empty file begins with a span', '', '']
]

for (const [name, before, after] of beginnings) {
  test(name, async (t) => {
    const dir = folder(t)
    const file = path.join(dir, 'spans.jsonl')
    fs.writeFileSync(file, before)
    const { code } = await drive(`
      const out = sinks(${JSON.stringify(file)})
      out.write(span(0))
      out.write(span(1))`)
    t.is(code, 0)
    const text = fs.readFileSync(file, 'utf8')
    t.true(text.startsWith(after), text.slice(0, 100))
    t.deepEqual(numbers(records(text.slice(after.length))), [0, 1])
  })
}

onLinux('a write-only file is written to', async (t) => {
  const dir = folder(t)
  fs.chmodSync(dir, 0o777)
  const file = path.join(dir, 'spans.jsonl')
  const { code } = await drive(`
    if (process.getuid() === 0) process.setuid(65534)
    fs.writeFileSync(${JSON.stringify(file)}, 'torn', { mode: 0o200 })
    sinks(${JSON.stringify(file)}).write(span(0))`)
  t.is(code, 0)
  t.regex(fs.readFileSync(file, 'utf8'), /^torn\{/)
})

/** @type {Array<[name: string, end: string, code: number | null, signal?: string]>} */
const ends = [
  ['the end of the program', '', 0],
  ['process.exit', 'process.exit(3)', 3],
  ['an exception', "setImmediate(() => { throw new Error('x') })", 1],
  ['process.abort', 'process.abort()', null, 'SIGABRT'],
  ['SIGTERM', "process.kill(process.pid, 'SIGTERM'); await wait(5000)", null, 'SIGTERM'],
  ['SIGTERM in an endless loop', "setTimeout(() => {}, 0); require('node:child_process').exec('sleep 0.2; kill ' + process.pid); for (;;);", null, 'SIGTERM'],
  ['SIGKILL', "process.kill(process.pid, 'SIGKILL'); await wait(5000)", null, 'SIGKILL']
]

for (const [name, end, code, signal = null] of ends) {
  test(`everything is in the file after ${name}`, async (t) => {
    const dir = folder(t)
    const result = await drive(`
      const out = sinks(${JSON.stringify(`${dir}/spans.jsonl`)})
      for (let i = 0; i < 2000; i++) out.write(span(i))
      ${end}`)
    t.deepEqual([result.code, result.signal], [code, signal])
    complete(t, dir, 2000)
  })
}

test('kill -9 at any moment leaves whole lines, except the last', async (t) => {
  const dir = folder(t)
  let seen = 0
  for (let round = 0; seen < 3; round++) {
    const file = path.join(dir, `${round}.jsonl`)
    const source = `${prelude}
      const out = sinks(${JSON.stringify(file)})
      let i = 0
      setInterval(() => { for (let j = 0; j < 500; j++) out.write(span(i++, { attributes: { text: 'x'.repeat(5000) } })) })`
    const child = spawn(process.execPath, ['-e', source], { stdio: 'ignore' })
    await new Promise((resolve) => setTimeout(resolve, 300 + round * 231))
    child.kill('SIGKILL')
    await new Promise((resolve) => child.on('close', resolve))
    if (!fs.existsSync(file)) continue
    seen++
    const lines = fs.readFileSync(file, 'utf8').split('\n')
    const last = lines.pop()
    t.deepEqual(numbers(records(lines.join('\n'))), lines.map((_, i) => i))
    t.log(`${lines.length} lines, ${last?.length} characters behind them`)
  }
})

test('threads and processes write whole lines to one file', async (t) => {
  const dir = folder(t)
  const { code, stderr } = await drive(`
    const { Worker } = require('node:worker_threads')
    const cluster = require('node:cluster')
    const { once } = require('node:events')
    const load = (from) => {
      const out = sinks(${JSON.stringify(`${dir}/spans.jsonl`)})
      for (let i = from; i < from + 500; i++) out.write(span(i, { attributes: { text: 'x'.repeat(i * 7919 % 20000) } }))
    }
    if (cluster.isWorker) { load(500 * Number(process.env.PART)); process.exit() }
    const thread = (part) => once(new Worker(${JSON.stringify(prelude)} + 'const load = ' + load + ';load(' + 500 * part + ')', { eval: true }), 'exit')
    const forked = (part) => once(cluster.fork({ PART: part }), 'exit')
    await Promise.all([thread(0), thread(1), forked(2), forked(3)])`)
  t.is(code, 0, stderr)
  complete(t, dir, 2000)
})

test('the file does not keep the process alive, and leaves nothing after close', async (t) => {
  const dir = folder(t)
  const { told, code } = await drive(`
    const out = sinks(${JSON.stringify(`${dir}/none/spans.jsonl, /dev/full, ${dir}/spans.jsonl, -`)})
    out.write(span(1))
    const active = process.getActiveResourcesInfo().filter((name) => name !== 'TTYWrap' && name !== 'PipeWrap')
    out.close(); out.close()
    out.write(span(2)); out.flush()
    tell({ signals: process.eventNames().filter((name) => /^SIG/.test(String(name))), active, stats: out.stats() })
    sinks(${JSON.stringify(`/dev/full, ${dir}/spans.jsonl`)}).write(span(3))`)
  t.is(code, 0)
  const [{ signals, active, stats }] = told
  t.deepEqual(signals, [])
  t.deepEqual(active, [])
  t.deepEqual(
    stats.outputs.map(({ written, dropped }) => [written, dropped]),
    [
      [0, 2],
      [0, 2],
      [1, 1],
      [1, 1]
    ]
  )
  t.deepEqual(numbers(read(path.join(dir, 'spans.jsonl'))), [1, 3])
})

test('a link is followed, and its target is written to', async (t) => {
  const dir = folder(t)
  fs.symlinkSync('real.jsonl', path.join(dir, 'link.jsonl'))
  await drive(`sinks(${JSON.stringify(`file://${dir}/link.jsonl`)}).write(span(0))`)
  t.deepEqual(numbers(read(path.join(dir, 'real.jsonl'))), [0])
})

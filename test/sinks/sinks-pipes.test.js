'use strict'

// Pipes, sockets and terminals. The reader may be slow, stuck or gone, and the program must not
// notice.

const { spawn, execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { drive, folder, numbers, prelude, read, records } = require('../helpers/sinks')

const onLinux = process.platform === 'linux' ? test : test.skip

/**
 * Runs a program whose stdout is a pipe of the shell.
 * @param {string} source
 * @param {string} reader a command
 * @returns {Promise<{ code: number | null, stdout: string, told: any[] }>} code of the program, stdout of the
 *   reader
 */
function piped (source, reader) {
  const text = `${prelude}\n;(async () => {\n${source}\n})()`
  const command = `"$NODE" -e "$TEXT" | ${reader}; exit \${PIPESTATUS[0]}`
  const child = spawn('bash', ['-c', command], { env: { ...process.env, NODE: process.execPath, TEXT: text } })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (chunk) => { stdout += chunk })
  child.stderr.setEncoding('utf8').on('data', (chunk) => { stderr += chunk })
  return new Promise((resolve) => child.on('close', (code) => {
    resolve({ code, stdout, told: records(stderr.split('\n').filter((line) => line.startsWith('{')).join('\n')) })
  }))
}

const range = (/** @type {number} */ count) => Array.from({ length: count }, (_, i) => i)

const load = `
  const out = sinks('-')
  for (let i = 0; i < 300; i++) out.write(span(i, { attributes: { text: 'x'.repeat(2000) } }))`

onLinux('a pipe gets at once what fits, and the rest by the end', async (t) => {
  const file = path.join(folder(t), 'out') // a reader that waits for nobody
  const { code, told } = await piped(`${load}
    tell(out.stats())
    out.flush()
    tell(out.stats())
    process.exit(5)`, `cat > ${file}`)
  t.is(code, 5)
  t.deepEqual(numbers(read(file)), range(300))
  t.true(told[0].written > 20)
  t.deepEqual([told[1].written, told[1].dropped], [300, 0])
})

onLinux('a socket from Node as the parent works', async (t) => {
  const { code, stdout, told } = await drive(`${load}
    console.log(JSON.stringify({ attributes: { i: 'the program' } }))
    await until(() => out.stats().written === 300)
    tell({ stats: out.stats(), warned })`)
  t.is(code, 0)
  t.deepEqual(numbers(records(stdout)).filter((i) => i !== 'the program'), range(300))
  t.deepEqual(told, [{ stats: told[0].stats, warned: [] }])
})

onLinux('a slow reader gets everything while the program runs', async (t) => {
  const { code, stdout, told } = await piped(`${load}
    await until(() => out.stats().written === 300)
    tell({ warned })`, '(sleep 0.5; cat)')
  t.is(code, 0)
  t.deepEqual(numbers(records(stdout)), range(300))
  t.deepEqual(told, [{ warned: [] }])
})

onLinux('a stuck reader blocks nothing, not even the exit; dropped lines are counted and reported once', async (t) => {
  const file = path.join(folder(t), 'pid')
  // It reads nothing and ends when the program is gone: a program that waited for it would never end.
  const reader = `{ until [ -s ${file} ]; do sleep 0.05; done; while kill -0 $(cat ${file}); do sleep 0.05; done 2> /dev/null; }`
  const { code, stdout, told } = await piped(`
    const out = sinks('-')
    process.on('exit', () => { out.flush(); tell({ stats: out.stats(), warned }) })
    let iterations = 0
    setInterval(() => iterations++, 10)
    for (let i = 0; i < 3000; i++) out.write(span(i, { attributes: { text: 'x'.repeat(1000) } }))
    await until(() => iterations === 20)
    fs.writeFileSync(${JSON.stringify(file)}, String(process.pid))
    process.exit(5)`, reader)
  t.is(code, 5)
  t.is(stdout, '')
  const [{ stats, warned }] = told
  t.true(stats.written > 20 && stats.written < 200, `${stats.written} in the pipe`)
  t.true(stats.dropped > 1500, `${stats.dropped} dropped`)
  t.deepEqual(warned.map(([code]) => code), ['SPANS_SLOW_READER'])
})

onLinux('a stuck reader of a socket blocks nothing either', async (t) => {
  const source = `${prelude}
    const out = sinks('-')
    process.on('exit', () => { out.flush(); tell(out.stats()) })
    for (let i = 0; i < 3000; i++) out.write(span(i, { attributes: { text: 'x'.repeat(1000) } }))
    setTimeout(() => process.exit(5), 100)`
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.pause()
  let stderr = ''
  child.stderr.on('data', (chunk) => { stderr += chunk })
  const code = await new Promise((resolve) => child.on('exit', resolve))
  child.stdout.destroy()
  t.is(code, 5)
  const [{ written, dropped }] = records(stderr)
  t.true(written > 20 && dropped > 1500, stderr)
})

for (const [name, reader] of [['that is gone', 'true'], ['that goes while it is written', 'head -c 10000 > /dev/null']]) {
  onLinux(`a reader ${name} is reported once`, async (t) => {
    const { code, told } = await piped(`
      await wait(100)
      const out = sinks('-')
      for (let i = 0; i < 100; i++) { for (let j = 0; j < 20; j++) out.write(span(i, { attributes: { text: 'x'.repeat(1000) } })); await wait(1) }
      await until(() => out.stats().outputs[0].fault !== undefined)
      out.write(span(1)); out.flush()
      tell({ warned, stats: out.stats() })
      process.exitCode = 5`, reader)
    t.is(code, 5)
    const [{ warned, stats }] = told
    t.deepEqual(warned, [['SPANS_EPIPE', 'spans cannot be written to stdout: it has no reader (EPIPE). They are dropped.']])
    t.is(stats.written + stats.dropped, 2001)
  })
}

onLinux('the program\'s own stdout stays as blocking as before', async (t) => {
  const { told } = await piped(`
    const flags = () => fs.readFileSync('/proc/self/fdinfo/1', 'utf8').match(/flags:.*/)[0]
    const before = flags()
    const out = sinks('-')
    for (let i = 0; i < 20; i++) { out.write(span(i)); fs.writeSync(1, 'mine\\n') }
    tell({ before, after: flags() })`, 'cat')
  t.is(told[0].after, told[0].before)
})

onLinux('a stdout that is a file is written like a file, in order with the program\'s own lines', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'out')
  const fd = fs.openSync(file, 'w')
  const source = `${prelude}; const out = sinks('-'); for (let i = 0; i < 100; i++) { console.log('mine ' + i); out.write(span(i)) }; process.kill(process.pid, 'SIGKILL')`
  await new Promise((resolve) => spawn(process.execPath, ['-e', source], { stdio: ['ignore', fd, 'inherit'] }).on('close', resolve))
  const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n')
  t.deepEqual(lines.filter((_, i) => i % 2 === 0), range(100).map((i) => `mine ${i}`))
  t.deepEqual(numbers(lines.filter((_, i) => i % 2 === 1).map((line) => JSON.parse(line))), range(100))
})

onLinux('a FIFO is awaited without blocking, loses its reader, and gets another', async (t) => {
  const dir = folder(t)
  const fifo = path.join(dir, 'fifo')
  execFileSync('mkfifo', [fifo])
  const { told, code } = await drive(`
    const { spawn } = require('node:child_process')
    const { once } = require('node:events')
    const fifo = ${JSON.stringify(fifo)}
    const out = sinks(fifo)
    for (let i = 0; i < 10; i++) out.write(span(i))
    const first = spawn('sh', ['-c', 'head -n 10 < ' + fifo + ' > ' + ${JSON.stringify(dir)} + '/first'])
    await once(first, 'close')
    for (let i = 10; i < 20; i++) out.write(span(i))
    const during = out.stats()
    const second = spawn('sh', ['-c', 'cat < ' + fifo + ' > ' + ${JSON.stringify(dir)} + '/second'])
    await until(() => out.stats().written === 20)
    out.close()
    await once(second, 'close')
    tell({ during, stats: out.stats(), warned })`)
  t.is(code, 0)
  const [{ during, stats, warned }] = told
  t.is(during.written, 10)
  t.deepEqual([stats.written, stats.dropped], [20, 0])
  t.deepEqual(warned.map(([code]) => code), ['SPANS_EPIPE'])
  t.deepEqual(numbers(read(path.join(dir, 'first'))), range(10))
  t.deepEqual(numbers(read(path.join(dir, 'second'))), range(20).slice(10))
})

onLinux('a terminal', async (t) => {
  if (!fs.existsSync('/usr/bin/script')) {
    t.log('no script command here')
    return t.falsy(process.env.CI)
  }
  const dir = folder(t)
  const source = `${prelude}; const out = sinks('-'); console.log('tty ' + process.stdout.isTTY); for (let i = 0; i < 5; i++) out.write(span(i)); tell(out.stats())`
  fs.writeFileSync(path.join(dir, 'program.js'), source)
  const stdout = execFileSync('script', ['-qec', `"${process.execPath}" "${path.join(dir, 'program.js')}"`, '/dev/null'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = stdout.split('\r\n')
  t.is(lines[0], 'tty true')
  t.deepEqual(numbers(lines.slice(1, 6).map((line) => JSON.parse(line))), range(5))
  t.regex(lines[6], /"written":5/)
})

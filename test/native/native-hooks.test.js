'use strict'

// Native hooks: the events that C callbacks of other addons get, and that misuse of add and remove does no
// harm. The addons are compiled here, like users compile theirs.

const path = require('node:path')
const { able, answers, folder } = require('../helpers/addons')
const { node, root } = require('../helpers/run')

/** Something of everything, and what JavaScript's hook counted of it beside the addon's. */
const busy = `
  const fs = require('node:fs')
  const net = require('node:net')
  const counts = {}
  const of = (type) => counts[type] ??= { made: 0, runs: 0 }
  trace.hook({ init: ({ type }) => { of(type).made++ }, after: ({ type }) => { of(type).runs++ } })
  counter.start(trace.nativeHooks().api)
  setTimeout(() => setImmediate(() => {}), 2)
  let left = 3
  const interval = setInterval(() => { if (--left === 0) clearInterval(interval) }, 1)
  queueMicrotask(() => process.nextTick(() => {}))
  fs.readFile(__filename, () => {})
  fs.promises.readFile(__filename).then(() => make('type of mine', 5))
  const server = net.createServer((socket) => socket.end('x')).listen(0, '127.0.0.1', () => {
    net.connect(server.address().port, '127.0.0.1').resume().on('close', () => server.close())
  })
  async function loop () { for (let i = 0; i < 50; i++) await (i % 2 ? null : new Promise((resolve) => setImmediate(resolve))) }
  loop()
  process.on('exit', () => {
    const report = counter.report()
    tell([counts, Object.fromEntries(Object.entries(report).map(([type, { made, runs }]) => [type, { made, runs }])), trace.stats().fault ?? null])
  })
`

for (const capture of ['native', 'js']) {
  able(`counts match those of trace.hook, ${capture} capture`, async (t) => {
    const [[counts, report, fault]] = await answers(t, busy, { env: { LONGSTACK_CAPTURE: capture } })
    t.deepEqual(report, counts)
    t.is(fault, null)
    t.like(counts, { 'type of mine': { made: 5, runs: 0 }, TCPCONNECTWRAP: { made: 1, runs: 1 }, TCPSERVERWRAP: { made: 1, runs: 1 } })
    t.true(counts.PROMISE.made > 100 && counts.PROMISE.runs > 50 && counts.Timeout.runs >= 4)
  })
}

able('only types that the filter selects are reported', async (t) => {
  const [[counts, report]] = await answers(t, busy, { env: { LONGSTACK: 'TCP' } })
  t.deepEqual(Object.keys(report).sort(), ['TCPCONNECTWRAP', 'TCPSERVERWRAP', 'TCPWRAP'])
  t.deepEqual(report, counts)
})

able('times match process.hrtime, increase, and measure a callback', async (t) => {
  const [[began, events, ended], { ms, runs }, elapsed] = await answers(t, `
    const began = process.hrtime.bigint()
    run('keep')
    setTimeout(() => {
      const [,,,, events] = torture.seen()
      tell([began, events.map(([, time]) => time), process.hrtime.bigint()])
      run('drop')
      counter.start(trace.nativeHooks().api)
      const start = performance.now()
      setTimeout(() => {
        const end = performance.now() + 40
        while (performance.now() < end);
      }, 1)
      process.on('exit', () => { tell(counter.report().Timeout); tell(performance.now() - start) })
    }, 5)
  `)
  t.true(events.length >= 2)
  t.deepEqual([began, ...events, ended], [began, ...events, ended].sort((a, b) => a - b))
  t.true(ended - began < 30e9)
  t.is(runs, 1)
  t.true(ms >= 39.9 && ms <= elapsed, `${ms} ms of ${elapsed}`)
})

able('times are read only if requested', async (t) => {
  const [[alone, beside]] = await answers(t, `
    run('untimed')
    make()
    const alone = torture.seen()
    run('timed')
    make()
    tell([alone, torture.seen()])
  `)
  t.deepEqual(alone.slice(0, 2), [1, 0])
  t.deepEqual(beside.slice(0, 2), [0, 1])
  t.true(beside[4][0][1] > 0)
})

able('the number of a stack gives its frames', async (t) => {
  const source = `
    const { stack } = trace.nativeHooks()
    run('keep')
    ;(function here () { make('MINE', 3) })()
    ;(function there () { make() })()
    const stacks = torture.seen()[4].map(([,, id]) => id)
    tell([stacks, stacks.map((id) => stack(id) ?? null), [0, -1, 1e9, NaN, 'x', undefined].map((id) => stack(id) ?? null)])
  `
  const [[ids, texts, unknown]] = await answers(t, source, { env: { LONGSTACK_CAPTURE: 'native' } })
  t.true(ids[0] > 0 && ids[0] === ids[1] && ids[1] === ids[2] && ids[3] !== ids[0])
  t.regex(texts[0], /^ {4}at make \(.*program\.cjs:\d+:\d+\)\n {4}at here \(/)
  t.regex(texts[3], /\n {4}at there \(/)
  t.deepEqual(unknown, Array(6).fill(null))
  const [[numbers]] = await answers(t, source, { env: { LONGSTACK_CAPTURE: 'js' } })
  t.true(
    numbers[0] > 0 && numbers[0] === numbers[1] && numbers[1] === numbers[2] && numbers[3] !== numbers[0]
  )
})

able('hooks pause while tracing is off', async (t) => {
  const [counts] = await answers(t, `
    counter.start(trace.nativeHooks().api)
    make('A')
    trace.disable()
    make('B')
    trace.enable()
    make('C')
    const all = counter.report()
    counter.stop()
    make('D')
    counter.start(trace.nativeHooks().api)
    tell([Object.keys(all), Object.keys(counter.report())])
  `)
  t.deepEqual(counts, [['A', 'C'], ['A', 'C']])
})

/** What is added; what adding answers; calls of the callbacks at the first and at the second event. */
const misuse = [
  ['removeSelf', 'a callback that removes itself', 0, [0, 0, 1, 0], [0, 0, 1, 0]],
  ['removeEarlier', 'one that removes another before it', 0, [1, 1, 1, 0], [2, 1, 2, 4]],
  ['removeLater', 'one that removes another after it: that is not called any more', 0, [0, 0, 1, 0], [0, 0, 2, 4]],
  ['addOne', 'one that adds another: it begins with the next event', 0, [0, 0, 1, 0], [1, 0, 2, 0]],
  ['addThousand', 'one that adds a thousand', 0, [0, 0, 1, 0], [1000, 0, 2, 0]],
  ['addWithoutEnd', 'one that adds until there is no room', 0, [0, 16383, 0, 5], [0, 16383, 0, 5]],
  ['twice', 'the same twice', 0, [2, 0, 0, 0], [4, 0, 0, 0]],
  ['nothing', 'no callback at all', 1, [0, 0, 0, 0], [0, 0, 0, 0]],
  ['small', 'a struct of another size', 1, [0, 0, 0, 0], [0, 0, 0, 0]],
  ['flags', 'unknown flags', 1, [0, 0, 0, 0], [0, 0, 0, 0]]
]

for (const [name, title, added, first, second] of misuse) {
  able(`safe: ${title}`, async (t) => {
    const [[answer, one, two]] = await answers(t, `
      const told = [run('${name}')] // to tell makes events itself
      make()
      told.push(torture.seen().slice(0, 4))
      make()
      tell([...told, torture.seen().slice(0, 4)])
    `)
    t.deepEqual({ answer, one, two }, { answer: added, one: first, two: second })
  })
}

able('removing a hook twice, or one never added, is safe', async (t) => {
  t.deepEqual(await answers(t, `
    run('dropOther')
    tell([run('dropOther'), run('count'), run('drop'), run('drop')])
    make()
    tell(torture.seen().slice(0, 1))
  `), [[4, 0, 0, 4], [0]])
})

able('the example prints where a program spends its time', async (t) => {
  const { stdout, stderr, code } = await node([path.join(root, 'examples', 'native-counter')], { env: { COUNTER: path.join(folder, 'counter.node') } })
  t.is(stderr, '')
  t.is(code, 0)
  const rows = stdout.trim().split('\n').map((line) => /^(\w+) +(\d+) made, (\d+) runs, ([\d.]+) ms$/.exec(line).slice(1))
  const [, , runs, ms] = rows.find(([type]) => type === 'Timeout')
  t.true(Number(runs) >= 1 && Number(ms) >= 20, 'a timer that works for 20 ms')
  t.deepEqual(rows.map(([,,, ms]) => Number(ms)), rows.map(([,,, ms]) => Number(ms)).sort((a, b) => b - a))
  t.true(rows.some(([type, made]) => type === 'TCPSERVERWRAP' && made === '1'))
})

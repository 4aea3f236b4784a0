'use strict'

const test = require('ava')
const { MessageTable, createMemory } = require('../../../lib/passing/message-table')

test('a note of one thread is found by another, and nothing else', (t) => {
  const memory = createMemory()
  const [sender, receiver] = [new MessageTable(memory), new MessageTable(memory)]
  const text = sender.addText('caf\u00e9 \u2500\u2500')
  t.is(receiver.textAt(text), 'caf\u00e9 \u2500\u2500')
  t.is(receiver.find(2, 0), 0)
  sender.note(2, 0, text)
  t.is(receiver.find(2, 0), text)
  t.deepEqual([receiver.find(3, 0), receiver.find(2, 1), receiver.find(2, 1 << 14)], [0, 0, 0])
  sender.note(2, 0, 0)
  t.is(receiver.find(2, 0), 0)
})

test('newer messages replace older ones, which become unknown', (t) => {
  const table = new MessageTable(createMemory())
  const text = table.addText('x')
  for (let count = 0; count < 40_000; count++) table.note(4, count, text)
  t.is(table.find(4, 0), 0)
  t.is(table.find(4, 39_999), text)
})

test('newer texts replace older ones, and none is confused with another', (t) => {
  const table = new MessageTable(createMemory())
  const texts = [...Array(20_000).keys()].map((i) => `${i}${'x'.repeat(i % 1000)}`)
  const places = texts.map((text) => table.addText(text))
  t.is(new Set(places).size, texts.length)
  t.is(table.textAt(places[0]), undefined)
  for (const [i, place] of places.entries()) {
    const text = table.textAt(place)
    if (table.isRecent(place)) t.is(text, texts[i])
    else t.true(text === texts[i] || text === undefined)
  }
  t.true(places.filter((place) => table.isRecent(place)).length > 1000)
})

test('a partly overwritten text is not returned', (t) => {
  const memory = createMemory()
  const table = new MessageTable(memory)
  const place = table.addText('the chain of a message')
  const bytes = Buffer.from(memory)
  bytes[bytes.indexOf('message')]++
  t.is(table.textAt(place), undefined)
})

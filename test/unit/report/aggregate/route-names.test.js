'use strict'

// A request that delays others before its route is known is named by its path there. A report finds the route
// by that name, for all paths that spans shorten.

const test = require('ava')
const { Renames } = require('../../../../report/aggregate/route-names')
const { nameOfPath } = require('../../../../lib/path-names')

const ids = ['17', '1,2,3', 'order-2024', 'me@example.com', 'q7Zk2MxP9aLw4Rt8', 'deadbeef01', 'a%40b', 'page=3', 'x;jsessionid=1A',
  '3f2504e0-4f89-11d3-9a0c-0305e82c3301']

for (const id of ids) {
  test(`the route of a path with ${id}`, (t) => {
    const renames = new Renames()
    const path = `/orders/${id}`
    const attributes = { 'http.request.method': 'GET', 'url.path': path }
    renames.learn(/** @type {any} */ ({ spanId: 'a', name: 'GET /orders/:id', kind: 'SERVER', attributes }))
    t.is(renames.nameOf(`GET ${nameOfPath(path)}`), 'GET /orders/:id')
  })
}

'use strict'

const http = require('node:http')
const { serveHttp } = require('../child')

serveHttp(http.createServer((request, response) => response.end('hello world')))

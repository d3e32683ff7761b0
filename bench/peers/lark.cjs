// Peer: the Lark Node SDK's EventDispatcher with an encrypt key behind node:http (adaptDefault).
const http = require('node:http');
const lark = require('@larksuiteoapi/node-sdk');
let n = 0;
const d = new lark.EventDispatcher({
  encryptKey: 'bench-encrypt-key-0123456789', verificationToken: 'bench-verification-token', loggerLevel: lark.LoggerLevel.fatal,
}).register({ 'im.message.receive_v1': async (data) => { n += data.message.content.length; return {}; } });
http.createServer().on('request', lark.adaptDefault('/webhooks/lark/events', d)).listen(Number(process.env.PORT || 3000), '127.0.0.1');

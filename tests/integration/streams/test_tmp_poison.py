import struct
from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c
from tests.integration.streams.worker_process import a_turn, publish, raw, until
LEDGER = "SELECT count(*) FROM ledger WHERE outcome = 'STORED'"
async def test_header(start_worker, kafka_bootstrap, topic_prefix, database_dsn):
    topic=f"{topic_prefix}turns.v1"
    p = AIOKafkaProducer(bootstrap_servers=kafka_bootstrap, acks="all"); await p.start()
    key, value, _ = raw(a_turn(1,"user/1"))
    b=p.create_batch(); b.append(key=key,value=value,timestamp=None,headers=[("abcd",b"x")]); b.close(); b._build()
    buf=bytearray(b._buffer); i=buf.find(b"abcd"); buf[i:i+4]=b"\xff\xfe\xff\xfe"; struct.pack_into(">I",buf,17,calc_crc32c(bytes(buf[21:]))); b._buffer=buf
    m = await (await p.send_batch(b, topic, partition=0)); print("sent", m.partition, m.offset)
    await p.stop()
    await publish(kafka_bootstrap, topic, [raw(a_turn(n, f"user/{n}")) for n in range(20)])
    w=start_worker()
    got=await until(database_dsn, LEDGER, lambda s: s>=20, 10)
    print("STORED", got, "exit", w.process.poll()); print("\n".join(l[:300] for l in w.lines[-8:]))
    assert got==20

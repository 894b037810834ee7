# Does what forward.pl does, for images without perl. Works in every Python 3.
import os, select, socket, struct

MOST, WINDOW, PART = 256, 65536, 16384
OPEN, DATA, END, CREDIT, CLOSE = range(1, 6)
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen(511)
listening.setblocking(False)
connections = {}
given = b""
last = 0


class Connection:
    def __init__(self, socket):
        self.socket, self.out, self.window = socket, b"", WINDOW
        self.ending = self.closing = self.shut = self.ended = False


def print_all(data):
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:
            select.select([], [1], [], 1)


def frame(kind, number, value, data=b""):
    print_all(struct.pack(">BII", kind, number, value) + data)


def drop(number, tell=False):
    connections.pop(number).socket.close()
    if tell:
        frame(CLOSE, number, 0)


def receive():
    global given
    try:
        data = os.read(0, 65536)
    except BlockingIOError:
        return
    if not data:
        raise SystemExit
    given += data
    while len(given) >= 9:
        kind, number, value = struct.unpack(">BII", given[:9])
        whole = 9 + (value if kind == DATA else 0)
        if len(given) < whole:
            return
        data, given = given[9:whole], given[whole:]
        one = connections.get(number)
        if one is None:
            continue
        if kind == DATA:
            one.out += data
        elif kind == CREDIT:
            one.window += value
        elif kind == END:
            one.ending = True
        elif kind == CLOSE:
            one.closing = True


def take():
    global last
    try:
        made, _ = listening.accept()
    except OSError:
        return
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    last += 1
    connections[last] = Connection(made)
    frame(OPEN, last, 0)


def pass_on(number, one):
    try:
        data = one.socket.recv(min(one.window, PART))
    except BlockingIOError:
        return
    except OSError:
        return drop(number, True)
    if data:
        one.window -= len(data)
        frame(DATA, number, len(data), data)
    else:
        one.ended = True
        frame(END, number, 0)


def deliver(number, one):
    try:
        size = one.socket.send(one.out)
    except BlockingIOError:
        return
    except OSError:
        return drop(number, True)
    one.out = one.out[size:]
    frame(CREDIT, number, size)


def end_idle(number, one):
    if one.out:
        return
    if one.closing:
        return drop(number)
    if one.ending and not one.shut:
        one.shut = True
        try:
            one.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    if one.shut and one.ended:
        drop(number)


print_all(("swefarm %d\n" % listening.getsockname()[1]).encode())
while True:
    wanted = [0] + ([listening] if len(connections) < MOST else [])
    pairs = list(connections.items())
    wanted += [c.socket for _, c in pairs if not c.ended and not c.closing and c.window > 0]
    readable, writable, _ = select.select(wanted, [c.socket for _, c in pairs if c.out], [])
    if 0 in readable:
        receive()
    if listening in readable:
        take()
    for number, one in pairs:
        if one.socket in readable:
            pass_on(number, one)
        if number in connections and one.socket in writable:
            deliver(number, one)
    for number, one in list(connections.items()):
        end_idle(number, one)

package replicator.debezium;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import org.apache.spark.sql.api.java.UDF1;

/**
 * Extracts the members of an object within a JSON text, if each is a plain value of its kind, as documented in
 * replicator/debezium/json_members.py. One pass over the bytes; any other text is left to Spark's parser.
 *
 * <p>Compiled on demand by Spark's own Janino (replicator/jvm/java_udfs.py): no lambdas, no generics, explicit casts.
 */
public final class Members implements UDF1 {
    private static final long serialVersionUID = 1L;
    private static final int MOST_DIGITS = 17;
    private static final byte[] MINUS_ZERO = {'-', '0'};

    private final String spelled;
    private transient Asked asked;

    /** The steps of the path, a letter for the kind of each member, and their names, as json_members.py spells them. */
    public Members(String spelled) {
        this.spelled = spelled;
    }

    /** The bytes of each member, NULL if it is null or missing; NULL for a text that is left to Spark's parser. */
    public Object call(Object json) {
        byte[] text = (byte[]) json;
        if (text == null || Json.isTooLong(text)) return null;
        if (asked == null) asked = new Asked(spelled);
        byte[][] found = new byte[asked.names.length][];
        return asked.object(text, 0, 0, found) == text.length ? found : null;
    }

    private static final class Asked {
        private final byte[][] path;
        private final byte[][] names;
        private final char[] kinds;

        Asked(String spelled) {
            String[] parts = spelled.split("\u001e", -1);
            path = Json.parts(parts[0], "\u001f");
            kinds = parts[1].toCharArray();
            names = Json.parts(parts[2], "\u001f");
        }

        /** The object in which the path continues at this level; it must be valid and have no wanted member twice. */
        int object(byte[] text, int at, int level, byte[][] found) {
            if (Json.byteAt(text, at) != '{') return Json.NO;
            if (Json.byteAt(text, at + 1) == '}') return level == path.length ? at + 2 : Json.NO;
            boolean[] seen = new boolean[level == path.length ? names.length : 1];
            int next = at, expected = 0;
            do {
                int name = next + 2, end = Json.behindPlain(text, name);
                if (Json.byteAt(text, next + 1) != '"' || Json.byteAt(text, end) != '"') return Json.NO;
                if (Json.byteAt(text, end + 1) != ':') return Json.NO;
                int member = level == path.length ? named(text, name, end, expected) : step(text, name, end, level);
                if (member != Json.NO) {
                    if (seen[member]) return Json.NO;
                    seen[member] = true;
                    expected = member + 1;
                }
                if (member == Json.NO) next = Json.any(text, end + 2);
                else if (level < path.length) next = object(text, end + 2, level + 1, found);
                else next = value(text, end + 2, member, found);
            } while (next != Json.NO && Json.byteAt(text, next) == ',');
            boolean isWhole = level == path.length || seen[0];
            return isWhole && next != Json.NO && Json.byteAt(text, next) == '}' ? next + 1 : Json.NO;
        }

        private int step(byte[] text, int name, int end, int level) {
            return same(text, name, end, path[level]) ? 0 : Json.NO;
        }

        /** The index of the member with the name, which most often is the one after the last. */
        private int named(byte[] text, int name, int end, int expected) {
            for (int next = 0; next < names.length; next++) {
                int member = (expected + next) % names.length;
                if (same(text, name, end, names[member])) return member;
            }
            return Json.NO;
        }

        private int value(byte[] text, int at, int member, byte[][] found) {
            int end = Json.literal(text, at, Json.NULL);
            if (end != Json.NO) return end;
            switch (kinds[member]) {
                case 's':
                    end = Json.string(text, at);
                    if (end != Json.NO) found[member] = unescaped(text, at + 1, end - 1);
                    return end;
                case 'b':
                    end = Json.literal(text, at, Json.byteAt(text, at) == 't' ? Json.TRUE : Json.FALSE);
                    break;
                case '2': end = Json.whole(text, at, 4); break;
                case '4': end = Json.whole(text, at, 9); break;
                case '8': end = Json.whole(text, at, 18); break;
                case 'd': end = floating(text, at); break;
                default: throw new IllegalStateException("no kind " + kinds[member]);
            }
            if (end != Json.NO) found[member] = Arrays.copyOfRange(text, at, end);
            return end;
        }
    }

    /** A number without an exponent, too short to be rounded twice; not -0, which a parser reads as the integer 0. */
    private static int floating(byte[] text, int at) {
        int end = Json.number(text, at);
        if (end == Json.NO || end - at > MOST_DIGITS) return Json.NO;
        if (end - at == MINUS_ZERO.length && Json.literal(text, at, MINUS_ZERO) != Json.NO) return Json.NO;
        for (int next = at; next < end; next++) {
            if (text[next] == 'e' || text[next] == 'E') return Json.NO;
        }
        return end;
    }

    private static boolean same(byte[] text, int start, int end, byte[] wanted) {
        return end - start == wanted.length && Json.literal(text, start, wanted) != Json.NO;
    }

    /** The text of a JSON string, unescaped. */
    private static byte[] unescaped(byte[] text, int start, int end) {
        int plain = Json.behindPlain(text, start);
        if (plain == end) return Arrays.copyOfRange(text, start, end);
        ByteArrayOutputStream found = new ByteArrayOutputStream(end - start);
        int at = start;
        while (at < end) {
            found.write(text, at, plain - at);
            at = plain;
            if (at < end) {
                boolean isCode = text[at + 1] == 'u';
                byte[] meant = Json.bytes(String.valueOf(isCode ? code(text, at + 2) : escape(text[at + 1])));
                found.write(meant, 0, meant.length);
                at += isCode ? 6 : 2;
                plain = Json.behindPlain(text, at);
            }
        }
        return found.toByteArray();
    }

    private static char code(byte[] text, int at) {
        int found = 0;
        for (int next = at; next < at + 4; next++) found = 16 * found + Character.digit((char) text[next], 16);
        return (char) found;
    }

    private static char escape(byte c) {
        switch (c) {
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            default: return (char) c;
        }
    }
}

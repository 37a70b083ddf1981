var C,ht,Pi,pe,kn,Je,_t,Ye,bt,Cn,En,yt,Me=Symbol.for("pv"),Ze={},en=[],$i=/^m(i|n|o|s|text|space)$/,Nn=Array.isArray,vt=en.slice,we=Object.assign;function ve(e){
e&&e.parentNode&&e.remove()}function Ve(e,n,t,r,i){var s={type:e,props:n,key:t,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:Me,__v:i||++ht,__i:-1,__u:0};return!i&&C.vnode&&C.
vnode(s),s}function T(e){return e.children}function ze(e,n){this.props=e,this.context=n,this.__g=0}function me(e,n){if(n==null)return e.__&&me(e.__,e.__i+1);for(var t;n<e.
__k.length;n++)if((t=e.__k[n])&&t.__e)return t.__e;return typeof e.type!="function"||e.props.__P?null:me(e)}function Ri(e){var n,t=e.__v,r=t.__e,i=[],s=[],a=e.__P;
a&&((n=we({constructor:Me},t)).__v=t.__v+1,C.vnode&&C.vnode(n),In(a,n,t,e.__n,a.namespaceURI,32&t.__u?[r]:null,i,r||me(t),32&t.__u,s),n.__v=t.__v,n.__.__k[n.__i]=
n,Et(i,n,s),t.__=t.__e=null,n.__e!=r&&wt(n))}function wt(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(n){return n&&(e.__e=n.__e)}),
wt(e)}function xn(e){(8&e.__g||(e.__g|=8,pe.push(e),Je++))&&kn==C.debounceRendering||((kn=C.debounceRendering)||queueMicrotask)(St)}function St(){try{for(var e,
n=1;pe.length;)pe.length>n&&pe.sort(_t),e=pe.shift(),n=pe.length,8&e.__g&&Ri(e)}finally{(Je=pe.length)&&(kn||queueMicrotask)(St)}}function Tt(e,n,t,r,i,s,a,c,u,d,l){
var p,m,f,g,_,h,v=r.__k||en,S=n.length;for(u=Mi(t,n,v,u,S),p=0;p<S;p++)(f=t.__k[p])!=null&&(m=~f.__i&&v[f.__i]||Ze,f.__i=p,h=In(e,f,m,i,s,a,c,u,d,l),g=f.__e,(m.
ref!=f.ref||8&m.__u)&&(m.ref&&Ln(m.ref,null,f,m),f.ref&&l.push(f.ref,f.__c||g,f)),_=_||g,4&f.__u?(u=At(f,u,e,!m.__v),m.__e&&(m.__e=null)):typeof f.type=="functi\
on"&&h!==void 0?u=h:g&&(u=g.nextSibling),f.__u&=-21);return t.__e=_,u}function Mi(e,n,t,r,i){var s,a,c,u,d,l,p,m,f,g=t.length,_=g,h=0,v=0,S=e.__k=Array(i);for(s=
0;s<i;s++)(a=n[s])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=S[s]=Ve(null,a):Nn(a)?a=S[s]=Ve(T,{children:a}):
a.constructor===Me&&a.__b?a=S[s]=Ve(a.type,a.props,a.key,a.ref,a.__v):S[s]=a,u=s+h,a.__=e,a.__b=e.__b+1,c=null,~(d=a.__i=Fi(a,t,u,_))&&(_--,(c=t[d])&&(c.__u|=2)),
c&&c.__v?(a.__u|=16,d==u-1?h--:d==u+1?h++:d!=u&&(d>u?h--:h++,v=1)):(~d||(i>g?h--:i<g&&h++),typeof a.type!="function"&&(a.__u|=4))):S[s]=null;if(v){for(l=[],p=[],
s=0;s<i;s++)if((a=S[s])&&16&a.__u){for(h=0,m=l.length;h<m;)l[f=h+m>>1]<a.__i?h=f+1:m=f;l[h]=a.__i,p[s]=h+1}for(h=l.length;s--;)p[s]&&(p[s]==h?h--:S[s].__u|=4)}if(_)
for(s=0;s<g;s++)!(c=t[s])||2&c.__u||(c.__e==r&&(r=me(c)),On(c,c));return r}function At(e,n,t,r){var i,s,a,c;if(typeof e.type=="function"){if(e.props.__P)return n;
if(i=e.__k)for(s=0;s<i.length;s++)i[s]&&(i[s].__=e,n=At(i[s],n,t,!1));return n}for(n&&!n.parentNode&&(n=me(e))&&!n.parentNode&&(n=null),a=e.__e,c=n;c&&c.nodeType==
8;)c=c.nextSibling;for(a!=c&&(!r&&t.moveBefore&&a.parentNode?t.moveBefore(a,n):t.insertBefore(a,n||null)),n=a;(n=n&&n.nextSibling)&&n.nodeType==8&&!n.data.startsWith(
"$s"););return n}function Fi(e,n,t,r){var i,s=e.key,a=e.type,c=n[t],u=c&&!(2&c.__u);if(c===null&&s==null||u&&s==c.key&&a==c.type)return t;if(r>(u?1:0)){for(i=t-1;i>=0;i--)if((c=
n[i])&&!(2&c.__u)&&s==c.key&&a==c.type)return i;for(i=t+1;i<n.length;i++)if((c=n[i])&&!(2&c.__u)&&s==c.key&&a==c.type)return i}return-1}function gt(e,n,t){t==null&&
(t=""),n[0]=="-"?e.setProperty(n,t):e[n]=t}function Qe(e,n,t,r,i){var s,a;if(n=="style")if(typeof t=="string")e.style.cssText=t;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(n in r)t&&n in t||gt(e.style,n);if(t)for(n in t)r&&t[n]==r[n]||gt(e.style,n,t[n])}else if(n[0]=="o"&&n[1]=="n")typeof t!="function"&&(t=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[n]=t,t&&r||(a=En[n]||(En[n]=Di(n)),(e.__a||(e.__a={}))[n]=Cn,s=n!=(n=n.replace(bt,"$1")),(n=n.slice(2))[0]<"a"&&
(n=n.toLowerCase()),t?e.addEventListener(n,a,s):e.removeEventListener(n,a,s));else{if(i=="http://www.w3.org/2000/svg")n=n.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(n!="width"&&n!="height"&&n!="href"&&n!="list"&&n!="form"&&n!="tabIndex"&&n!="download"&&n!="rowSpan"&&n!="colSpan"&&n!="role"&&n!="popover"&&n in e)
try{return void(e[n]=t??"")}catch{}if(typeof t=="function")return;t==null||t===!1&&n[4]!="-"?e.removeAttribute(n):e.setAttribute(n,n=="popover"&&t==1?"":t)}}function Di(e){
return function(n){var t=this.__e;if(t){if(t=t[e],n[Ye]==null)n[Ye]=Cn++;else if(n[Ye]<this.__a[e])return;return t(C.event?C.event(n):n)}}}function In(e,n,t,r,i,s,a,c,u,d){
var l,p,m,f,g,_,h,v,S,w,y,P,B,J,ae,mt,fe,ye,ce=n.type;if(n.constructor!==Me)return null;128&t.__u&&(u=32&t.__u,l=t.__c.__z)&&(n.__u|=u,p=s=[],l.nodeType==8?c=Xe(
l,s):s.push(l),c=s[0]||c),(l=C.__b)&&l(n);e:if(typeof ce=="function"){m=a.length;try{if(v=n.props,S=(l=ce.prototype)&&l.render,w=(l=ce.contextType)&&r[l.__c],y=
l?w?w.props.value:l.__:r,(f=t.__c)?(n.__c=f,2&f.__g&&(f.__g|=1)):(S?n.__c=f=new ce(v,y):(n.__c=f=new ze(v,y),f.constructor=ce,f.render=Ui),w&&w.sub(f),f.state||
(f.state={}),f.__n=r,f.__g|=8,f.__h=[],f.__k=[]),S&&(f.__s||(f.__s=f.state),ce.getDerivedStateFromProps&&(f.__s==f.state&&(f.__s=we({},f.__s)),we(f.__s,ce.getDerivedStateFromProps(
v,f.__s)))),g=f.props,_=f.state,f.__v=n,t.__c){if(v!==g&&S&&!ce.getDerivedStateFromProps&&f.componentWillReceiveProps&&f.componentWillReceiveProps(v,y),n.__v==t.
__v&&!(8&f.__g)||!(4&f.__g)&&f.shouldComponentUpdate&&f.shouldComponentUpdate(v,f.__s,y)===!1){n.__v!=t.__v&&(f.props=v,f.state=f.__s,f.__g&=-9),n.__e=t.__e,n.__k=
t.__k,n.__k.some(function(Z){Z&&(Z.__=n)}),en.push.apply(f.__h,f.__k),f.__k=[],f.__h.length&&a.push(f),c=me(t);break e}f.componentWillUpdate&&f.componentWillUpdate(
v,f.__s,y),S&&f.componentDidUpdate&&f.__h.push(function(){f.componentDidUpdate(g,_,h)})}else S&&!ce.getDerivedStateFromProps&&f.componentWillMount&&f.componentWillMount(),
S&&f.componentDidMount&&f.__h.push(f.componentDidMount);f.context=y,f.props=v,f.__P=e,f.__g&=-5,P=C.__r,B=S?25:0;do f.__g&=-9,P&&P(n),l=f.render(f.props,f.state=
f.__s,f.context);while(8&f.__g&&++B<25);S&&(en.push.apply(f.__h,f.__k),f.__k=[]),f.state=f.__s,f.getChildContext&&(r=we({},r,f.getChildContext())),S&&t.__c&&f.getSnapshotBeforeUpdate&&
(h=f.getSnapshotBeforeUpdate(g,_)),J=l&&l.type===T&&l.key==null?l.props.children:l,v.__P&&(l=c,i=(e=v.__P).namespaceURI,u=s=null,t.props&&t.props.__P!=e&&(t.__k.
some(function(Z){Z&&On(Z,Z)}),t.__k=null),c=t.__k?me(t,0):null),c=Tt(e,Nn(J)?J:[J],n,t,r,i,s,a,c,u,d),v.__P&&(n.__e=null,c=l),n.__u&=-161,p&&p.some(ve),f.__h.length&&
a.push(f),1&f.__g&&(f.__g&=-4)}catch(Z){if(a.length=m,n.__v=null,u||s)if(Z&&Z.then){if(n.__u|=128|u,s){for(~(fe=s.indexOf(c||void 0))||(fe=s.length);(ye=s[fe-1])&&
ye.nodeType==8;)fe--;for(;fe<s.length;fe++)if(ye=s[fe])if(s[fe]=null,ae){if(ye==mt)break}else{if(ye.nodeType!=8)break;ye.data.startsWith("$s")&&(mt=Xe(ae=ye))}}
if(!ae){for(;c&&c.nodeType==8&&c.nextSibling;)c=c.nextSibling;ae=c}(l=Xe(ae=n.__c.__z||(n.__c.__z=ae)))?(n.__e=ae,c=l):n.__e=c,c=c&&c.nextSibling}else s&&s.some(
ve);else n.__e=t.__e;n.__k||(n.__k=t.__k||[]),Z&&Z.then||kt(n),C.__e(Z,n,t)}}else c=n.__e=Bi(t.__e,n,t,r,i,s,a,u,d,e);return(l=C.diffed)&&l(n),c}function Xe(e,n){
if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var t=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))t++;else if(e.data.startsWith("/$s")&&!--t)
return e}n&&n.push(e)}}function kt(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(kt))}function Et(e,n,t){for(var r=0;r<t.length;)Ln(t[r++],t[r++],t[r++]);C.__c&&
C.__c(n,e),e.some(function(i){try{e=i.__h,i.__h=[],e.some(function(s){s.call(i)})}catch(s){C.__e(s,i.__v)}})}function Bi(e,n,t,r,i,s,a,c,u,d){var l,p,m,f,g,_,h,
v,S=t.props||Ze,w=n.props,y=n.type;if(y=="svg"?i="http://www.w3.org/2000/svg":y=="math"?i="http://www.w3.org/1998/Math/MathML":i||(i="http://www.w3.org/1999/xht\
ml"),s){for(l=0;l<s.length;l++)if((g=s[l])&&(y?g.localName==y:g.nodeType==3)){e=g,s[l]=null;break}}if(!e){if(v=d.ownerDocument||document,!y)return v.createTextNode(
w);e=v.createElementNS(i,y,w.is?w:d),c&&(C.__m&&C.__m(n,s),c=!1),s=null}if(y){if(d=y=="template"&&e.content||e,s=y=="textarea"&&w.defaultValue!=null?null:s&&vt.
call(d.childNodes),!c&&s)for(S={},l=0;l<e.attributes.length;l++)S[(g=e.attributes[l]).name]=g.value;for(l in S)g=S[l],l=="dangerouslySetInnerHTML"?m=g:l=="child\
ren"||l in w||l=="value"&&"defaultValue"in w||l=="checked"&&"defaultChecked"in w||Qe(e,l,null,g,i);for(l in w)g=w[l],l=="children"?f=g:l=="dangerouslySetInnerHT\
ML"?p=g:l=="value"?_=g:l=="checked"?h=g:c&&typeof g!="function"||S[l]===g||Qe(e,l,g,S[l],i);p?(c||m&&(p.__html==m.__html||p.__html==e.innerHTML)||(e.innerHTML=p.
__html),n.__k=[]):(m&&(e.textContent=""),(y=="foreignObject"||i=="http://www.w3.org/1998/Math/MathML"&&$i.test(y))&&(i="http://www.w3.org/1999/xhtml"),Tt(d,Nn(f)?
f:[f],n,t,r,i,s,a,s?s[0]:t.__k&&me(t,0),c,u),s&&s.some(ve)),c&&y!="textarea"||(l="value",y=="progress"&&_==null?e.removeAttribute(l):_==null||_===e[l]&&(y!="pro\
gress"||_)||Qe(e,l,_,S[l],i),l="checked",h!=null&&h!=e[l]&&Qe(e,l,h,S[l],i))}else S===w||c&&e.data==w||(e.data=w);return e}function Ln(e,n,t,r){try{typeof e=="f\
unction"?n?n.__x=e(n)||1:r&&(r=r.__c||r.__e)&&(n=r.__x)&&(r.__x=null,typeof n=="function"?n():e(null)):e.current=n}catch(i){C.__e(i,t)}}function On(e,n,t){var r,
i,s,a;if(C.unmount&&C.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||Ln(r,null,n,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(c){
C.__e(c,n)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&On(r[a],n,typeof e.type!="function"||t&&!e.props.__P);!t&&(r=e.__c)&&(r=r.__z)&&(i=Xe(r,s=[]))&&
(r==e.__e&&s.some(ve),ve(i),ve(r)),t||ve(e.__e),e.__e=e.__c=e.__=null}function Ui(e,n,t){return this.constructor(e,t)}function xt(e,n){var t,r,i,s;C.__&&C.__(e,
n),n.nodeType==9&&(n=n.documentElement),r=(t=e&&32&e.__u)?null:n.__k,n.__k=Ve(T,{children:[e]}),i=[],s=[],In(n,n.__k,r||Ze,Ze,n.namespaceURI,r?null:n.firstChild?
vt.call(n.childNodes):null,i,r?r.__e:n.firstChild,t,s),Et(i,n.__k,s),n.__k.props.children=null}function Ct(e){function n(t){var r,i;return this.getChildContext||(r=new Set,(i={})[n.__c]=this,this.getChildContext=function(){return i},this.shouldComponentUpdate=
function(s){this.props.value!=s.value&&r.forEach(function(a){a.__g|=4,xn(a)})},this.sub=function(s){r.add(s);var a=s.componentWillUnmount;s.componentWillUnmount=
function(){r.delete(s),a&&a.call(s)}}),t.children}return n.__c="__cC"+yt++,n.__=e,n.Provider=(n.Consumer=function(t,r){return t.children(r)}).contextType=n,n}C={__e:function(e,n,t,r){for(var i,s,a;n=n.__;)if((i=n.__c)&&!(1&i.__g)){i.__g|=4;try{if((a=(s=i.constructor)&&s.getDerivedStateFromError)&&i.setState(s.getDerivedStateFromError(
e)),i.componentDidCatch&&(i.componentDidCatch(e,r||{}),a=1),a&&8&i.__g)return void(i.__g|=2)}catch(c){e=c}}throw Je=0,e}},ht=0,Pi=function(e){return e!=null&&e.
constructor===Me},ze.prototype.setState=function(e,n){var t=this.__s;t&&t!=this.state||(t=this.__s=we({},this.state)),typeof e=="function"&&(e=e(we({},t),this.props)),
e&&(we(t,e),this.__v&&(n&&this.__k.push(n),xn(this)))},ze.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),xn(this))},ze.prototype.render=
T,pe=[],Je=0,_t=function(e,n){return e.__v.__b-n.__v.__b},Ye=Symbol(),bt=/(PointerCapture)$|Capture$/i,Cn=0,En={},yt=0;var Ae,$,Pn,Nt,$n=Object.is,nn=0,Dt=[],Rn=[],R=C,It=R.__b,Lt=R.__r,Ot=R.diffed,Pt=R.__c,$t=R.unmount,Rt=R.__;function tn(e,n){R.__h&&R.__h($,e,nn||n),nn=0;var t=$.
__H||($.__H={__:[],__h:[]});return e>=t.__.length&&t.__.push({}),t.__[e]}function I(e){return nn=1,Fn(Gt,e)}function Fn(e,n,t){var r=tn(Ae++,2);if(r.t=e,!r.__c&&
(r.__=[t?t(n):Gt(void 0,n),function(s){var a=(r.__N||r.__)[0],c=r.t(a,s);$n(a,c)||(r.__N=[c,r.__[1]],r.__c.setState({}))}],r.__c=$,!$.__f)){$.__f=!0;var i=$.shouldComponentUpdate;
$.shouldComponentUpdate=function(s,a,c){var u=this.__H;if(!u)return!0;var d=!1,l=this.props!=s;if(u.__.some(function(m){m.__N&&(d=!0,$n(m.__[0],m.__N[0])||(l=!0))}),
i){var p=i.call(this,s,a,c);return d?p||l:p}return!d||l}}return r.__}function q(e,n){var t=tn(Ae++,3);!R.__s&&Ut(t.__H,n)&&(t.__P=!0,t.__=e,t.u=n,$.__H.__h.push(
t))}function le(e){return nn=5,x(function(){return{current:e}},[])}function x(e,n){var t=tn(Ae++,7);return Ut(t.__H,n)&&(t.__=e(),t.__H=n),t.__}function Bt(e){var n=$.context[e.__c],t=tn(Ae++,9);return t.c=e,n?(t.__==null&&(t.__=!0,n.sub($)),n.props.value):e.__}function Gi(){var e;do{for(;e=Rn.shift();)try{Fe(e)}catch(t){R.__e(t,{__:(e=e.__P)&&e.__v})}for(;e=Dt.shift();){var n=e.__H;if(e.__P&&n)try{n.__h.some(Fe),n.__h.
some(Mn),n.__h=[]}catch(t){n.__h=[],R.__e(t,e.__v)}}}while(Rn.length)}R.__b=function(e){$=null,It&&It(e)},R.__=function(e,n){e&&n.__k&&n.__k.__m&&(e.__m=n.__k.__m),
Rt&&Rt(e,n)},R.__r=function(e){Lt&&Lt(e),Ae=0;var n=($=e.__c).__H;n&&(Pn==$?$.__h=[]:(n.__h.some(Fe),n.__h.some(Mn),Ae=0),n.__h=[],n.__.some(function(t){t.__N&&
(t.__=t.__N),t.u=t.__N=void 0})),Pn=$},R.diffed=function(e){Ot&&Ot(e);var n=e.__c;n&&n.__H&&(n.__H.__h.length&&Ft(Dt.push(n)),n.__H.__.some(function(t){t.u&&(t.
__H=t.u)})),Pn=$=null},R.__c=function(e,n){n.some(function(t){try{t.__h.some(Fe),t.__h=t.__h.filter(function(r){return!r.__||Mn(r)})}catch(r){t.__h=[function(){
throw r}]}}),Pt&&Pt(e,n)},R.unmount=function(e){$t&&$t(e);var n,t,r=e.__c;r&&r.__H&&(r.__H.__.some(function(i){try{if(i.__P&&i.__c){if(t===void 0){for(t=e.__;t&&
(!t.__c||!t.__c.__P);)t=t.__;t=t&&t.__c}i.__P=t,Ft(Rn.push(i))}else Fe(i)}catch(s){n=s}}),r.__H=void 0,n&&R.__e(n,r.__v))};var Mt=typeof requestAnimationFrame==
"function";function qi(e){var n,t=function(){clearTimeout(r),Mt&&cancelAnimationFrame(n),setTimeout(e)},r=setTimeout(t,35);Mt&&(n=requestAnimationFrame(t))}function Ft(e){
e!=1&&Nt==R.requestAnimationFrame||((Nt=R.requestAnimationFrame)||qi)(Gi)}function Fe(e){var n=$,t=e.__c;typeof t=="function"&&(e.__c=void 0,t()),$=n}function Mn(e){
var n=$;e.__c=e.__(),$=n}function Ut(e,n){return!e||e.length!=n.length||n.some(function(t,r){return!$n(t,e[r])})}function Gt(e,n){return typeof n=="function"?n(
e):n}var rn=class{decoder=new TextDecoder;rest="";take(n){let t=(this.rest+this.decoder.decode(n,{stream:!0})).split(`
`);if(this.rest=t.pop()??"",this.rest.length>4194304)throw new Error("the watch sent a line that is too long");return t.filter(Boolean).map(r=>JSON.parse(r))}};var De="/apis/visibility.tutti.dev/v1alpha1",qt=120,Ki=100,Y=class extends Error{constructor(t,r,i=0,s){super(r);this.status=t;this.retryAfterMs=i;this.noUser=s}status;retryAfterMs;noUser},
on=class{constructor(n,t){this.token=n;this.onUser=t}token;onUser;known=new Map;async check(){await this.fetched(De,{})}async list(n,t){let r=`${De}/${n}`,i=this.
known.get(r),s=i?{"If-None-Match":i.etag}:{},a=await this.fetched(r,{headers:s,signal:t});if(a.status===304&&i)return i.listed;let c=await this.read(r,a,t),u=a.
headers.get("ETag");return u&&this.known.set(r,{etag:u,listed:c}),c}async read(n,t,r){let i=/"(.*)"/.exec(t.headers.get("Warning")??"")?.[1]??"",s=await t.json(),
a={items:s.items,version:s.metadata.resourceVersion??"",warning:i};for(let c=0;s.metadata.continue&&c<Ki;c++){let u=`${n}?continue=${encodeURIComponent(s.metadata.
continue)}`;s=await(await this.fetched(u,{signal:r})).json(),a.items=a.items.concat(s.items)}return a}async get(n,t){return await(await this.fetched(`${De}/${n}`,
{signal:t})).json()}async*watch(n,t,r){let i=new URLSearchParams({watch:"true",resourceVersion:t,allowWatchBookmarks:"true",timeoutSeconds:String(qt)}),s=AbortSignal.
any([r,AbortSignal.timeout((qt+10)*1e3)]),c=(await this.fetched(`${De}/${n}?${i}`,{signal:s})).body.getReader(),u=new rn;for(;;){let{done:d,value:l}=await c.read();
if(d)return;yield u.take(l)}}async fit(n,t,r){let i=JSON.stringify({apiVersion:"visibility.tutti.dev/v1alpha1",kind:"Fit",metadata:{name:"question"},spec:{manifests:t}}),
s=`${De}/namespaces/${encodeURIComponent(n)}/fits`,a={"Content-Type":"application/json"};return await(await this.fetched(s,{method:"POST",headers:a,body:i,signal:r})).
json()}async fetched(n,t){let r=new Headers(t.headers);r.set("Accept","application/json"),this.token&&r.set("Authorization",`Bearer ${this.token}`);let i;try{i=
await fetch(n,{...t,headers:r,cache:"no-store",redirect:"manual"})}catch(a){throw t.signal?.aborted?a:new Y(0,"the server does not answer")}let s=await ji(i);if((!s||
s.noUser)&&this.onUser(s?.noUser),s)throw s;return i}};async function ji(e){let n=s=>new Y(s,"the login has ended",0,"login wanted");if(e.type==="opaqueredirect")
return n(e.status);if(e.status===304)return;if(e.ok)return Wi(e)?void 0:n(e.status);let t=await Hi(e),r=Number(e.headers.get("Retry-After")??0)*1e3||0;if(e.status!==
401)return new Y(e.status,t||Qi(e),r);if(!t)return n(401);let i=/\berror="?invalid_token/.test(e.headers.get("WWW-Authenticate")??"");return new Y(401,t,0,i?"to\
ken refused":"token wanted")}function Wi(e){return/^application\/json\b/.test(e.headers.get("Content-Type")??"")}async function Hi(e){try{let{kind:n,message:t}=await e.
json();return n==="Status"&&typeof t=="string"?t:""}catch{return""}}function Qi(e){return`${e.status} ${e.statusText}`.trim()}var Yi=Symbol.for("pv"),Vi=0;function o(e,n,t,r,i,s){n||(n={});var a,c,u=n;if("ref"in u&&typeof e!="function")for(c in u={},n)c=="ref"?a=n[c]:u[c]=n[c];var d={type:e,props:u,key:t,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:Yi,__v:--Vi,__i:-1,__u:0};return(i||s)&&(d.__source=i,d.__self=s),C.vnode&&C.vnode(d),d}var Dn="tutti.address";function Kt(){sessionStorage.setItem(Dn,location.hash),location.reload()}function jt(){let e=sessionStorage.getItem(Dn);sessionStorage.removeItem(
Dn),e&&!location.hash&&history.replaceState(null,"",e)}function Wt({onToken:e,message:n}){let[t,r]=I(""),i=t.trim().replace(/^Bearer\s+/i,""),s=/^[\x21-\x7e]+$/.
test(i);return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("form",{onSubmit:a=>{a.preventDefault(),s&&e(i)},children:[o("label",{for:"token",
children:"Bearer token of this cluster"}),o("input",{id:"token",type:"password",autocomplete:"off",spellcheck:!1,autofocus:!0,value:t,onInput:a=>r(a.currentTarget.
value)}),o("button",{type:"submit",disabled:!s,children:"Log in"})]}),n&&o("p",{class:"error",role:"alert",children:n}),o("p",{children:["For example ",o("code",
{children:"kubectl create token NAME -n NAMESPACE"}),". The token stays in this tab and is forgotten when the tab is closed. With a kubeconfig, ",o("code",{children:"\
tutti console"})," needs none."]})]})}function Ht({why:e}){return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("p",{class:"error",role:"alert",
children:Vt(e)}),o("p",{children:o("button",{type:"button",onClick:Kt,children:"Log in again"})}),e==="token refused"&&o("p",{children:["The proxy in front of t\
his page has logged you in and passed a token on. If it passes an old token on, log out there: oauth2-proxy does so at ",o("code",{children:"/oauth2/sign_out"}),
". If another login does not help, the API server does not trust the token's issuer or audience: the log of the API service has its reason."]})]})}function Qt({
message:e}){return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("p",{class:"error",role:"alert",children:e}),o("p",{children:o("button",{type:"\
button",onClick:()=>location.reload(),children:"Try again"})})]})}function Yt({why:e}){return o("p",{class:"ended",role:"alert",children:[o("span",{children:[Vt(
e)," What is below is the last known state."]})," ",o("button",{type:"button",onClick:Kt,children:"Log in again"})]})}function Vt(e){return e==="token refused"?
"The cluster does not accept the token of your login.":"Your login has ended."}function N(e){let{namespace:n,name:t}=e.metadata;return n?`${n}/${t}`:t}function ee(e){return`${e.metadata.namespace}/${e.status.title||e.metadata.name}`}function sn({
status:e},n){let t=n.get(e.gang);if(!t||t.metadata.uid===e.gangId)return t;let{creationTimestamp:r}=t.metadata;return Date.parse(e.time)>=(r?Date.parse(r):0)?t:
void 0}function zt(e,n,t){let r=e.filter(s=>s.metadata.namespace===n),i=r.filter(s=>s.metadata.name===t);return i.length?i:r.filter(({metadata:s,status:a})=>{let c=a.
owner||s.name;return t===c||t===`${c} (${a.dialect})`||t===a.title})}var Bn=2e3,zi=50,Xi=2e3,Ji=1/3,Zi=15e3,eo=3e4,no=1e4,ne=class{constructor(n,t,r=!1,i){this.api=n;this.resource=t;this.watched=r;this.onRead=i}api;resource;watched;onRead;snapshot={
items:[],freshness:"loading",message:""};listeners=new Set;objects=new Map;ending;lingering;gathering;watchAgainAt=0;drawingMs=0;subscribe(n){return this.listeners.
add(n),clearTimeout(this.lingering),this.ending||(this.ending=new AbortController,this.run(this.ending.signal)),()=>{this.listeners.delete(n),!this.listeners.size&&
(this.lingering=setTimeout(()=>this.stop(),no))}}stop(){this.ending?.abort(),this.ending=void 0}async run(n){let t=0;for(;!n.aborted;)try{await ro(n),await this.
follow(n),t=0}catch(r){if(n.aborted)return;t+=1;let i=r instanceof Y?r.retryAfterMs:0,s=r instanceof Y&&r.status===403;s&&this.objects.clear(),this.publish(s?"f\
orbidden":"failed",r instanceof Error?r.message:String(r)),await an(Math.max(i,Math.min(Zi,1e3*2**t)),n).catch(()=>{})}}async follow(n){let t=await this.api.list(
this.resource,n);this.onRead?.(t.items),this.objects.clear();for(let r of t.items)this.objects.set(N(r),r);(this.snapshot.freshness!=="live"||!to(this.snapshot.
items,t.items)||this.snapshot.message!==t.warning)&&this.publish("live",t.warning),this.watched&&Date.now()>=this.watchAgainAt?await this.watch(t.version,n):await an(
Bn,n)}async watch(n,t){try{let r=Date.now();for await(let i of this.api.watch(this.resource,n,t)){for(let{type:s,object:a}of i){if(s==="ERROR")throw new Y(a.code??
500,a.message??"the watch failed");s==="DELETED"?this.objects.delete(N(a)):s!=="BOOKMARK"&&this.objects.set(N(a),a)}i.some(s=>s.type!=="BOOKMARK")&&this.publishSoon()}
Date.now()-r<Bn&&await an(Bn,t)}catch(r){if(t.aborted)throw r;r instanceof Y&&r.status===410||(this.watchAgainAt=Date.now()+eo)}}publishSoon(){this.gathering??=
setTimeout(()=>this.publish("live",this.snapshot.message),Math.min(Xi,Math.max(zi,this.drawingMs/Ji)))}publish(n,t){clearTimeout(this.gathering),this.gathering=
void 0,this.snapshot={items:[...this.objects.values()],freshness:n,message:t};let r=performance.now();for(let i of[...this.listeners])i();setTimeout(()=>{this.drawingMs=
performance.now()-r})}};function to(e,n){return e.length===n.length&&e.every((t,r)=>t===n[r])}async function ro(e){for(;globalThis.document?.hidden;)await an(500,
e)}function an(e,n){return new Promise((t,r)=>{let i=()=>{clearTimeout(s),r(new Error("ended"))},s=setTimeout(()=>{n.removeEventListener("abort",i),t()},e);n.addEventListener(
"abort",i,{once:!0})})}function Xt(e,n){let t=[],r=e.metadata.creationTimestamp;r&&t.push({time:r,title:"Seen by Tutti",details:""});for(let{status:i}of Jt(e,n)){let s=`${i.count} ${i.
count===1?"pod":"pods"}`,a=new Set((i.pods??[]).map(c=>c.node).filter(Boolean)).size;t.push({time:i.time,title:i.action==="Bind"?`Decided to bind ${s}`:`Decided\
 to evict ${s} for it`,details:[a?`on ${a} ${a===1?"node":"nodes"}`:"",i.domain?`in ${i.domain}`:"",i.attempt?`attempt ${i.attempt}`:"",i.message||i.reason||""].
filter(Boolean).join(", ")})}for(let i of e.status.conditions??[]){if(!i.lastTransitionTime)continue;let s=i.status==="False"?" (no longer)":"";t.push({time:i.lastTransitionTime,
title:`${i.type}${s}`,details:[i.reason,i.message].filter(Boolean).join(": ")})}return t.sort((i,s)=>Date.parse(i.time)-Date.parse(s.time))}function Jt(e,n){let t=new Map(
[[N(e),e]]);return n.filter(r=>sn(r,t))}function Zt(e,n){let t=new Map;for(let{status:i}of Jt(e,n))if(i.action==="Bind")for(let s of i.pods??[])t.set(s.name,{name:s.
name,node:s.node??""});let r=new Set((e.status.placement??[]).map(i=>i.node));return[...t.values()].filter(i=>r.has(i.node)).sort((i,s)=>i.name<s.name?-1:1)}function ke(e){let[n,t]=e.replace(/^#\/?/,"").split("?",2),[r,...i]=(n??"").split("/").map(io);return{page:r||"overview",parts:i,query:new URLSearchParams(t??"")}}
function io(e){try{return decodeURIComponent(e)}catch{return e}}function V(e,...n){return`#/${[e,...n].map(encodeURIComponent).join("/")}`}function er(e){if(!e||
!URL.canParse(e))return;let{protocol:n,href:t}=new URL(e);return n==="https:"||n==="http:"?t:void 0}function Be(e){let n=e.indexOf("/");return V("gangs",e.slice(
0,n),e.slice(n+1))}var oo={n:1e-9,u:1e-6,m:.001,"":1,k:1e3,M:1e6,G:1e9,T:1e12,P:1e15,E:1e18,Ki:1024,Mi:1048576,Gi:1073741824,Ti:1099511627776,Pi:0x4000000000000,Ei:1152921504606847e3},
so=/^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/;function cn(e){let n=so.exec(e??""),t=n?oo[n[2]??""]:void 0,r=n&&t!==void 0?Number(n[1])*t:NaN;return Number.
isFinite(r)?r:void 0}function K(e){return cn(e)??0}function ao(e){return e.endsWith("memory")||e.endsWith("storage")||e.includes("hugepages")}function ie(e,n){let t=n<
0?"\u2212":"",r=Math.abs(n);if(r>0&&r<.9995)return`${t}${nr(r*1e3)} m`;let[i,s,a]=ao(e)?[1024,["","Ki","Mi","Gi","Ti","Pi","Ei"],1024]:[1e3,["","k","M","G","T",
"P","E"],1e4],c=r,u=0;for(;c>=(u?i:a)*.9995&&u<s.length-1;)c/=i,u+=1;return`${t}${nr(c)} ${s[u]}`.trimEnd()}function nr(e){return e>=99.95?String(Math.round(e)):
String(Number(e.toFixed(1)))}function te(e){return e.slice(e.lastIndexOf("/")+1)}function ge(e){let n=t=>t.includes("/")?0:t==="cpu"?1:t==="memory"?2:t==="pods"?
4:3;return[...e].sort((t,r)=>n(t)-n(r)||(t<r?-1:1))}function tr(e){let n=new Map(e.map(a=>[a.metadata.name,a])),t=new Map;for(let a of e){let c=a.status.parent??"",u=n.has(c)&&c!==a.metadata.name?c:"";t.set(u,[...t.
get(u)??[],a])}let r=[],i=new Set,s=(a,c)=>{if(!i.has(a)){i.add(a),r.push({queue:a,depth:c});for(let u of Un(t.get(a.metadata.name)??[]))s(u,c+1)}};for(let a of Un(
t.get("")??[]))s(a,0);for(let a of Un(e))s(a,0);return r}function Un(e){return[...e].sort((n,t)=>n.metadata.name<t.metadata.name?-1:1)}function ln(e){return(e.status.
resources??[]).map(n=>{let t=K(n.used),r=cn(n.deserved);return{resource:n.resource,used:t,wanted:K(n.wanted),promised:K(n.promised),reserved:K(n.reserved),guarantee:K(
n.guarantee),deserved:r,limit:cn(n.limit),borrowed:r===void 0?0:Math.max(0,t-r)}})}var co=240,lo=1e3,rr=2e3,uo=6e3,un=class{instants=[];series=new Map;stepMs=rr;get since(){return this.instants[0]}take(n,t){t<(this.instants.at(-1)??0)&&this.clear(),
t-(this.instants.at(-2)??-1/0)<this.stepMs&&this.instants.pop();let r=this.instants.push(t)-1;for(let i of this.series.values())i.used[r]=i.deserved[r]=void 0;for(let i of n)
for(let s of ln(i)){let a=this.seriesOf(i.metadata.name,s.resource,r+1);a&&(a.used[r]=s.used,a.deserved[r]=s.deserved)}this.instants.length>co&&this.thin()}lines(n,t){
let r=this.series.get(ir(n,t)),i=[],s=-1/0;return this.instants.forEach((a,c)=>{let u=r?.used[c];u!==void 0&&((a-s>2*this.stepMs+uo||r?.used[c-1]===void 0)&&i.push(
[]),i.at(-1).push({at:a,used:u,deserved:r?.deserved[c]}),s=a)}),i}seriesOf(n,t,r){let i=ir(n,t),s=this.series.get(i);if(s||this.series.size>=lo)return s;let a={
used:Array(r).fill(void 0),deserved:Array(r).fill(void 0)};return this.series.set(i,a),a}thin(){let n=this.instants.length-1,t=r=>r.filter((i,s)=>s%2===0||s===n);
this.instants=t(this.instants),this.stepMs*=2;for(let[r,i]of this.series)i.used=t(i.used),i.deserved=t(i.deserved),i.used.every(s=>s===void 0)&&this.series.delete(
r)}clear(){this.instants=[],this.series=new Map,this.stepMs=rr}};function ir(e,n){return JSON.stringify([e,n])}function sr(e,n,t,r,i){let s=Math.max(...e.flat().
map(l=>Math.max(l.used,l.deserved??0)),Number.MIN_VALUE),a=l=>or(t>n?r*(l-n)/(t-n):r),c=l=>or(i*(1-Math.max(0,l)/s)),u=(l,p)=>`${l.map((m,f)=>`${f?"L":"M"}${a(m.
at)} ${c(p(m))}`).join("")}${l.length===1?"h0":""}`,d=e.flatMap(l=>fo(l,p=>p.deserved===void 0));return{used:e.map(l=>u(l,p=>p.used)).join(""),area:e.map(l=>`${u(
l,p=>p.used)}V${i}H${a(l[0].at)}Z`).join(""),deserved:d.map(l=>u(l,p=>p.deserved)).join("")}}function fo(e,n){let t=[];return e.forEach((r,i)=>{n(r)||((i===0||n(
e[i-1]))&&t.push([]),t.at(-1).push(r))}),t}function or(e){return Math.round(e*100)/100}function ar(e,n){let t=n.flat(),r=c=>{let[u,d]=[Math.min(...c),Math.max(...c)].
map(l=>ie(e,l));return u===d?"unchanged":`${u} to ${d}`},i=t.at(-1);if(!i)return`${te(e)}: nothing is known`;let s=t.map(c=>c.deserved).filter(c=>c!==void 0),a=`${te(
e)}: ${ie(e,i.used)} used (${r(t.map(c=>c.used))})`;return i.deserved===void 0?a:`${a}; ${ie(e,i.deserved)} deserved (${r(s)})`}var dn=class{constructor(n){this.api=n;this.gangs=new ne(n,"gangs",!0),this.queues=new ne(n,"queues",!1,t=>this.queueHistory.take(t,Date.now())),this.nodes=new ne(
n,"nodes"),this.podShapes=new ne(n,"podshapes"),this.instances=new ne(n,"instances"),this.decisions=new ne(n,"decisions")}api;gangs;queues;queueHistory=new un;nodes;podShapes;instances;decisions;stop(){
for(let n of[this.gangs,this.queues,this.nodes,this.podShapes,this.instances,this.decisions])n.stop()}},Gn=Ct(void 0);function j(){let e=Bt(Gn);if(!e)throw new Error(
"there is no session");return e}function O(e){let[,n]=Fn((t,r)=>t+1,0);return q(()=>e.subscribe(()=>n()),[e]),e.snapshot}function oe(e=1e3){let[n,t]=I(Date.now());
return q(()=>{let r=setInterval(()=>t(Date.now()),e);return()=>clearInterval(r)},[e]),n}function cr(){let[e,n]=I(()=>ke(location.hash));return q(()=>{let t=()=>n(
ke(location.hash));return addEventListener("hashchange",t),()=>removeEventListener("hashchange",t)},[]),e}function F(e,n){let{page:t,parts:r,query:i}=ke(location.
hash);n?i.set(e,n):i.delete(e);let s=i.toString();history.replaceState(null,"",`${V(t,...r)}${s?`?${s}`:""}`),dispatchEvent(new HashChangeEvent("hashchange"))}var qn=[["d",86400],["h",3600],["m",60],["s",1]];function Ue(e){let n=Math.max(0,Math.floor(e/1e3));if(n<1)return"0s";let t=qn.findIndex(([,u])=>n>=u),[r,i]=qn[t],
s=Math.floor(n/i),a=qn[t+1];if(!a||s>=10||a[0]==="s")return`${s}${r}`;let c=Math.floor((n-s*i)/a[1]);return c?`${s}${r}${c}${a[0]}`:`${s}${r}`}function ue(e,n){
let t=Date.parse(e??"");return Number.isNaN(t)?"":Ue(n-t)}function fn(e){let n=Date.parse(e??"");return Number.isNaN(n)?"":new Date(n).toISOString().replace("T",
" ").replace(/\.\d+Z$/,"Z")}function Q({children:e,of:n}){let t=n.find(c=>c.freshness==="failed"),r=[...new Set(n.filter(c=>c.message&&c.freshness!=="failed").map(c=>c.message))],i=n.some(
c=>c.freshness==="loading"),[s,a]=t?["not current","bad"]:i?["loading","idle"]:["live","good"];return o(T,{children:[o("h1",{children:[e," ",o("span",{class:`ba\
dge ${a}`,role:"status",children:s})]}),t&&o("p",{class:"error",role:"alert",children:t.message}),r.map(c=>o("p",{class:"warning",children:c},c))]})}function pn({
of:e}){return e.freshness==="forbidden"?o(W,{children:e.message}):e.freshness==="failed"?o("p",{class:"error",children:e.message}):null}function lr({value:e,onSearch:n}){
let t=le(null);return q(()=>{let r=i=>{let s=i.target;i.key!=="/"||i.ctrlKey||i.metaKey||/^(INPUT|TEXTAREA|SELECT)$/.test(s.tagName)||(i.preventDefault(),t.current?.
focus())};return addEventListener("keydown",r),()=>removeEventListener("keydown",r)},[]),o("input",{ref:t,type:"search",class:"search",value:e,"aria-label":"Sea\
rch gangs by name, owner, namespace, queue or reason",placeholder:"Search gangs ( / )",onInput:r=>n(r.currentTarget.value)})}var Kn=["auto","light","dark"];function ur(){
let[e,n]=I(()=>localStorage.getItem("tutti.theme")??"auto");q(()=>{document.documentElement.dataset.theme=e,localStorage.setItem("tutti.theme",e)},[e]);let t=Kn[(Kn.
findIndex(r=>r===e)+1)%Kn.length];return o("button",{type:"button",onClick:()=>n(t),title:`Change to ${t}`,children:["Theme: ",e]})}var po={Running:"good",Starting:"\
busy",Unknown:"bad",Inqueue:"wait",Pending:"idle",Completed:"done"};function Ee({phase:e}){return o("span",{class:`badge ${po[e]??"idle"}`,children:e})}function se({
place:e,title:n=e}){return o("a",{href:Be(e),children:n})}function he({named:e}){let n=e.names??[],t=e.count-n.length;return o("ul",{class:"inline",children:[n.
map(r=>o("li",{children:o(se,{place:r})},r)),t>0&&o("li",{children:n.length?`${t} more`:`${t} ${t===1?"gang":"gangs"}`})]})}function mn({label:e,whole:n,parts:t,
marks:r=[]}){let i=s=>`${n>0?Math.min(100,100*s/n):0}%`;return o("div",{class:"bar",role:"img","aria-label":e,title:e,children:[t.map(s=>o("span",{class:s.kind,
style:{width:i(s.value)}},s.kind)),r.map(s=>o("i",{class:s.kind,style:{left:i(s.value)}},s.kind))]})}function _e({resource:e,value:n}){return o(T,{children:n===
void 0?"\u2013":ie(e,n)})}function W({children:e}){return o("p",{class:"empty",children:e})}function z({label:e,children:n}){return o("div",{class:"scroll",role:"\
region","aria-label":e,tabIndex:0,children:n})}function Se({label:e,value:n,options:t,onChoice:r}){return o("label",{children:[e," ",o("select",{value:n,onChange:i=>r(
i.currentTarget.value),children:t.map(i=>o("option",{value:i,children:i},i))})]})}var gn=200;function dr({route:e}){let n=j(),[t="",r=""]=e.parts,i=O(n.gangs),s=x(()=>new ne(n.api,`namespaces/${encodeURIComponent(t)}/decisions`),[n,t]);q(()=>()=>s.
stop(),[s]);let a=O(s),c=zt(i.items,t,r),[u]=c;return o(T,{children:[o(Q,{of:[i,a],children:[o("small",{children:[t,"/"]}),c.length===1&&u?u.status.title||u.metadata.
name:r]}),!u&&i.freshness==="live"&&o(W,{children:"There is no such gang, or you may not see it. It may have ended."}),u&&c.length===1&&o(mo,{gang:u,decisions:a.
items}),c.length>1&&o(he,{named:{count:c.length,names:c.map(N)}})]})}function mo({gang:e,decisions:n}){let t=oe(),{status:r,metadata:i}=e,{members:s}=r;return o(
T,{children:[r.pending&&o("p",{class:"why",children:r.pending.message}),o("dl",{class:"facts",children:[o("dt",{children:"Phase"}),o("dd",{children:o(Ee,{phase:r.
phase})}),o("dt",{children:"Members"}),o("dd",{children:[s.running," running, ",s.pending," pending",s.succeeded?`, ${s.succeeded} succeeded`:"",s.failed?`, ${s.
failed} failed`:""," of ",s.total,"; at least ",r.minMember]}),o("dt",{children:"Queue"}),o("dd",{children:o("a",{href:`${V("queues")}?${new URLSearchParams({queue:r.
queue})}`,children:r.queue})}),o("dt",{children:"Age"}),o("dd",{children:ue(i.creationTimestamp,t)}),o(Ge,{name:"Owner",value:r.owner}),o(Ge,{name:"API",value:r.
dialect}),o(Ge,{name:"Domain",value:r.domain}),o(Ge,{name:"Node pool",value:r.nodePool}),o(Ge,{name:"Attempt",value:r.attempt?String(r.attempt):""}),o(go,{id:r.
traceId,address:er(r.traceUrl)})]}),r.pending&&o(ho,{pending:r.pending,now:t}),o(_o,{gang:e,decisions:n}),o(bo,{gang:e,decisions:n})]})}function Ge({name:e,value:n}){
return n?o(T,{children:[o("dt",{children:e}),o("dd",{children:n})]}):null}function go({id:e,address:n}){return e?o(T,{children:[o("dt",{children:"Trace"}),o("dd",
{children:n?o("a",{href:n,rel:"noreferrer",children:[e," in Jaeger"]}):e})]}):null}function ho({pending:e,now:n}){return o("section",{children:[o("h2",{children:"\
What it waits for"}),o("dl",{class:"facts",children:[o("dt",{children:"Reason"}),o("dd",{children:e.reason}),e.since&&o(T,{children:[o("dt",{children:"Since"}),
o("dd",{children:ue(e.since,n)})]}),e.ahead&&o(T,{children:[o("dt",{children:"Ahead of it"}),o("dd",{children:o(he,{named:e.ahead})})]}),e.holders&&o(T,{children:[
o("dt",{children:"Hold what it lacks"}),o("dd",{children:o(he,{named:e.holders})})]}),e.quota&&o(T,{children:[o("dt",{children:"Quota"}),o("dd",{children:o(fr,{
all:e.quota})})]})]})]})}function fr({all:e}){return o("ul",{class:"inline",children:e.map((n,t)=>o("li",{children:[n.nodes?`${n.nodes} \xD7 `:"",n.reason,n.missing?
` (${n.missing} ${n.resource} missing)`:""]},t))})}function _o({gang:e,decisions:n}){let t=new Map((e.status.pending?.roles??[]).map(c=>[c.name,c])),r=new Map((e.
status.roles??[]).map(c=>[c.name,c])),i=[...new Set([...r.keys(),...t.keys()])].sort(),s=x(()=>Zt(e,n),[e,n]),a=e.status.placement??[];return o("section",{children:[
o("h2",{children:"Members"}),!i.length&&o(W,{children:"It has no pods yet."}),i.length>0&&o(z,{label:"Members by role",children:o("table",{children:[o("thead",{
children:o("tr",{children:[o("th",{scope:"col",children:"Role"}),o("th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",class:"number",children:"\
Placed"}),o("th",{scope:"col",class:"number",children:"Running"}),o("th",{scope:"col",class:"number",children:"Would fit now"}),o("th",{scope:"col",children:"No\
des refuse because"})]})}),o("tbody",{children:i.map(c=>{let[u,d]=[r.get(c),t.get(c)];return o("tr",{children:[o("th",{scope:"row",children:c||"(none)"}),o("td",
{class:"number",children:u?.members??"\u2013"}),o("td",{class:"number",children:u?.placed??"\u2013"}),o("td",{class:"number",children:u?.running??"\u2013"}),o("\
td",{class:"number",children:d?`${d.fitting} of ${d.wanted}`:"\u2013"}),o("td",{children:d?.refusals&&o(fr,{all:d.refusals})})]},c)})})]})}),a.length>0&&o("h3",
{children:["On ",a.length," ",a.length===1?"node":"nodes"]}),s.length>0?o(z,{label:"Members and their nodes",children:o("table",{children:[o("thead",{children:o(
"tr",{children:[o("th",{scope:"col",children:"Pod"}),o("th",{scope:"col",children:"Node"})]})}),o("tbody",{children:s.slice(0,gn).map(c=>o("tr",{children:[o("th",
{scope:"row",children:c.name}),o("td",{children:c.node})]},c.name))})]})}):o("ul",{class:"inline",children:a.slice(0,gn).map(c=>o("li",{children:[c.node," (",c.
members,")"]},c.node))}),Math.max(s.length,a.length)>gn&&o("p",{children:["The first ",gn," are shown."]})]})}function bo({gang:e,decisions:n}){let t=x(()=>Xt(e,
n),[e,n]),r=Date.parse(t[0]?.time??"");return o("section",{children:[o("h2",{children:"History"}),o("ol",{class:"history",children:t.map((i,s)=>o("li",{children:[
o("time",{dateTime:i.time,children:fn(i.time)})," ",o("small",{children:["+",((Date.parse(i.time)-r)/1e3).toFixed(1)," s"]})," ",o("strong",{children:i.title}),
" ",i.details]},s))})]})}var qe=["Running","Starting","Unknown","Inqueue","Pending","Completed"];function pr(e){let n=new Map;for(let{status:t}of e)for(let r of t.resources??[]){let i=n.
get(r.resource)??{resource:r.resource,total:0,requested:0,unusable:0};i.total+=K(r.allocatable),i.requested+=K(r.requested),(!t.ready||!t.schedulable)&&(i.unusable+=
Math.max(0,K(r.free))),n.set(r.resource,i)}return n}function hn(e){let n=new Map(qe.map(t=>[t,0]));for(let{status:t}of e)n.set(t.phase,(n.get(t.phase)??0)+1);return n}
function mr(e){let n=new Map;for(let t of e){let r=t.status.pending?.reason;if(!r)continue;let i=t.status.members.pending,s=n.get(r)??{reason:r,gangs:0,members:0,
largest:t};s.gangs+=1,s.members+=i,i>s.largest.status.members.pending&&(s.largest=t),n.set(r,s)}return[...n.values()].sort((t,r)=>r.members-t.members||(t.reason<
r.reason?-1:1))}function gr(e,n){let t=new Map;for(let r of e)for(let i of r.status.pending?.holders?.names??[]){let s=t.get(i)??{gang:i,gangs:0,members:0};s.gangs+=
1,s.members+=r.status.members.pending,t.set(i,s)}return[...t.values()].sort((r,i)=>i.members-r.members||(r.gang<i.gang?-1:1)).slice(0,n)}function hr(e){let n=new Set(
e.map(r=>r.metadata.name)),t=new Map;for(let{status:r}of e)if(!n.has(r.parent??""))for(let i of r.resources??[]){let s=t.get(i.resource)??{resource:i.resource,promised:0,
reserved:0};s.promised+=K(i.promised),s.reserved+=K(i.reserved),t.set(i.resource,s)}return t}function _r(e,n){let t=n.toLowerCase().split(/\s+/).filter(Boolean);
return t.length?e.filter(r=>{let{status:i}=r,a=[N(r),i.owner,i.title,i.queue,i.phase,i.dialect,i.pending?.reason].join(" ").toLowerCase();return t.every(c=>a.includes(
c))}):[...e]}var br=100;function yr({route:e}){let{gangs:n}=j(),t=O(n),r=oe(),[i,s]=I(br),a=e.query.get("search")??"",c=e.query.get("phase")??"",u=e.query.get("queue")??"",d=x(
()=>_r(t.items,a).filter(m=>!u||m.status.queue===u),[t.items,a,u]),l=x(()=>hn(d),[d]),p=x(()=>d.filter(m=>!c||m.status.phase===c).sort(yo),[d,c]);return o(T,{children:[
o(Q,{of:[t],children:"Gangs"}),o("div",{class:"filters",role:"group","aria-label":"Phase",children:[o("button",{type:"button","aria-pressed":!c,onClick:()=>F("p\
hase",""),children:["All ",d.length]}),qe.map(m=>o("button",{type:"button","aria-pressed":c===m,onClick:()=>F("phase",c===m?"":m),children:[m," ",l.get(m)]},m)),
u&&o("button",{type:"button",onClick:()=>F("queue",""),children:["Queue: ",u," \u2715"]}),a&&o("button",{type:"button",onClick:()=>F("search",""),children:["Sea\
rch: ",a," \u2715"]})]}),t.freshness==="live"&&!p.length&&o(W,{children:"No gang that you may see is like this."}),p.length>0&&o(z,{label:"Gangs",children:o("ta\
ble",{class:"list",children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Gang"}),o("th",{scope:"col",children:"Phase"}),o("th",{scope:"c\
ol",class:"number",children:"Running"}),o("th",{scope:"col",class:"number",children:"Minimum"}),o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",children:"\
Age"}),o("th",{scope:"col",children:"Why it waits"})]})}),o("tbody",{children:p.slice(0,i).map(m=>o(vo,{gang:m,now:r},N(m)))})]})}),p.length>i&&o("p",{children:o(
"button",{type:"button",onClick:()=>s(i+4*br),children:["Show more: ",p.length-i," are left"]})})]})}function yo(e,n){let t=r=>r.status.pending?0:1;return t(e)-
t(n)||(N(e)<N(n)?-1:1)}function vo({gang:e,now:n}){let{status:t,metadata:r}=e;return o("tr",{children:[o("th",{scope:"row",children:o(se,{place:N(e),title:ee(e)})}),
o("td",{children:o(Ee,{phase:t.phase})}),o("td",{class:"number",children:[t.members.running,"/",t.members.total]}),o("td",{class:"number extra",children:t.minMember}),
o("td",{children:t.queue}),o("td",{children:ue(r.creationTimestamp,n)}),o("td",{class:"sentence",children:t.pending?.message})]})}function Ke(e){let n=2166136261;for(let r=0;r<e.length;r++)n=Math.imul(n^e.charCodeAt(r),16777619);n=Math.imul(n^n>>>15,2246822519);let t=(n^n>>>13)>>>0;return`\
hsl(${t%360} ${50+(t>>>9)%30}% ${40+(t>>>17)%16}%)`}function Sr(e){let n=new Set;for(let t of e)for(let{resource:r}of t.status.resources??[])n.add(r);return ge(n)}function Tr(e){let n=new Set;for(let t of e)for(let r of Object.
keys(t.status.topology??{}))n.add(r);return[...n].sort()}function Ar(e,n,t,r,i){let s=new Map;for(let c of n)for(let{node:u,members:d}of c.status.placement??[]){
let l=s.get(u);l?l.push({gang:c,members:d}):s.set(u,[{gang:c,members:d}])}let a=new Map;for(let c of[...e].sort((u,d)=>u.metadata.name<d.metadata.name?-1:1)){let u=i?
c.status.topology?.[i]??"":"",d=a.get(u)??{name:u,tiles:[]};d.tiles.push(wo(c,s.get(c.metadata.name)??[],t,r)),a.set(u,d)}return[...a.values()].sort((c,u)=>c.name<
u.name?-1:1)}function wo(e,n,t,r){let{status:i}=e,s=(i.resources??[]).find(p=>p.resource===t),a=K(s?.allocatable),c=a>0?Math.min(1,K(s?.requested)/a):0,u=n.reduce(
(p,m)=>p+m.members,0),d=u?Math.max(0,i.members-u):i.pods,l=new Map;for(let p of n){let m=r==="gang"?N(p.gang):p.gang.status.queue;l.set(m,(l.get(m)??0)+p.members)}
return d&&l.set("",d),{node:e,usable:i.ready&&i.schedulable,segments:[...l].map(([p,m])=>({name:p,part:c*m/(u+d)})),gangs:n.map(p=>({gang:N(p.gang),title:ee(p.gang),
members:p.members}))}}var Wn=16,vr=8,So=44,jn=5;function kr(e,n,t){let r=e.length>1;for(let i=So;i>jn;i--){let s=wr(e,n,i,r);if(s&&s.height<=t)return s}return wr(
e,Math.max(n,jn),jn,r)}function wr(e,n,t,r){let i=Math.floor(n/t);if(i<1)return;let s=[],[a,c,u]=[0,0,0];for(let d of e){let l=Math.max(1,Math.min(i,r?Math.ceil(
Math.sqrt(d*2)):d)),p={columns:l,width:l*t,height:Math.ceil(d/l)*t+(r?Wn:0)};a>0&&a+p.width>n&&(c+=u+vr,a=u=0),s.push({x:a,y:c,columns:l,width:p.width}),a+=p.width+
vr,u=Math.max(u,p.height)}return{side:t,boxes:s,height:c+u}}function Er({route:e}){let n=j(),t=O(n.nodes),r=O(n.gangs),i=x(()=>Sr(t.items),[t.items]),s=x(()=>Tr(t.items),[t.items]),a=e.query.get("resource")??i[0]??"",c=e.
query.get("by")==="queue"?"queue":"gang",u=e.query.get("group")??s[0]??"",d=x(()=>Ar(t.items,r.items,a,c,u==="none"?"":u),[t.items,r.items,a,c,u]),[l,p,m]=To(),
f=x(()=>kr(d.map(w=>w.tiles.length),p,m),[d,p,m]),g=x(()=>d.flatMap(w=>w.tiles),[d]),[_,h]=I(""),v=g.find(w=>w.node.metadata.name===_),S=w=>{let y=g.findIndex(ae=>ae.
node.metadata.name===_),P=f.boxes[0]?.columns??1,B={ArrowRight:1,ArrowLeft:-1,ArrowDown:P,ArrowUp:-P}[w.key],J=w.key==="Home"?0:w.key==="End"?g.length-1:B&&y+B;
J===void 0||!g[J]||(w.preventDefault(),h(g[J].node.metadata.name),l.current?.querySelectorAll("button")[J]?.focus())};return o(T,{children:[o(Q,{of:[t,r],children:"\
Cluster map"}),o("div",{class:"filters",children:[o(Se,{label:"Resource",value:a,options:i,onChoice:w=>F("resource",w)}),o(Se,{label:"Colour by",value:c,options:[
"gang","queue"],onChoice:w=>F("by",w)}),s.length>0&&o(Se,{label:"Group by",value:u,options:[...s,"none"],onChoice:w=>F("group",w)})]}),t.freshness==="live"&&!g.
length&&o(W,{children:"There are no nodes."}),o("div",{class:"map",ref:l,role:"group","aria-label":`${g.length} nodes; arrow keys move`,onKeyDown:S,children:o("\
div",{style:{height:`${f.height}px`,position:"relative"},children:d.map((w,y)=>{let P=f.boxes[y];return o("div",{class:"box",style:{left:`${P.x}px`,top:`${P.y}p\
x`,width:`${P.width}px`},children:[d.length>1&&o("div",{class:"title",style:{height:`${Wn}px`},title:w.name,children:w.name||"(no label)"}),w.tiles.map(B=>o(Ao,
{tile:B,side:f.side,resource:a,pressed:B===v,focusable:v?B===v:B===g[0],onChoose:h},B.node.metadata.name))]},w.name)})})}),o("div",{"aria-live":"polite",children:v?
o(Eo,{tile:v}):o("p",{class:"empty",children:"Choose a node to see what is on it."})})]})}function To(){let e=le(null),[n,t]=I([0,0]);return q(()=>{let r=new ResizeObserver(
([i])=>{i&&t([Math.floor(i.contentRect.width),Math.floor(i.contentRect.height)])});return r.observe(e.current),()=>r.disconnect()},[]),[e,...n]}function Ao({tile:e,
side:n,resource:t,pressed:r,focusable:i,onChoose:s}){let{name:a}=e.node.metadata,c=e.segments.reduce((d,l)=>d+l.part,0),u=`${a}: ${Math.round(c*100)} % of ${te(
t)} requested, ${e.gangs.length} gangs`+(e.usable?"":", takes no new pods");return o("button",{type:"button",class:e.usable?"tile":"tile unusable","aria-label":u,
"aria-pressed":r,title:u,tabIndex:i?0:-1,onClick:()=>s(a),style:{width:`${n-1}px`,height:`${n-1}px`,backgroundImage:ko(e)}})}function ko(e){let n=0,t=e.segments.
map(({name:r,part:i})=>{let s=n;return n+=i*100,`${r?Ke(r):"var(--wanted)"} ${s.toFixed(1)}% ${n.toFixed(1)}%`});return t.length?`linear-gradient(to top, ${t.join(
", ")}, transparent ${n.toFixed(1)}%)`:"none"}function Eo({tile:e}){let{metadata:n,status:t}=e.node;return o("section",{children:[o("h2",{children:n.name}),o("d\
l",{class:"facts",children:[(t.resources??[]).map(r=>o(T,{children:[o("dt",{title:r.resource,children:te(r.resource)}),o("dd",{children:[r.requested," of ",r.allocatable,
" requested, ",r.free," free"]})]})),!e.usable&&o(T,{children:[o("dt",{children:"State"}),o("dd",{children:t.ready?"cordoned":"not ready"})]}),t.taints&&o(T,{children:[
o("dt",{children:"Taints"}),o("dd",{children:t.taints.join(", ")})]}),Object.entries(t.topology??{}).map(([r,i])=>o(T,{children:[o("dt",{children:r}),o("dd",{children:i})]})),
o("dt",{children:"Gangs"}),o("dd",{children:[o("ul",{class:"inline",children:e.gangs.map(r=>o("li",{children:[o("span",{class:"swatch",style:{background:Ke(r.gang)}}),
" ",o(se,{place:r.gang,title:r.title})," (",r.members,")"]},r.gang))}),!e.gangs.length&&"none that you may see"]})]})]})}var Hn=10;function xr(){let e=j(),n=O(e.gangs),t=O(e.nodes),r=O(e.queues),i=O(e.podShapes),s=O(e.instances);return o(T,{children:[o(Q,{of:t.freshness==="forbidd\
en"?[n,r]:[n,t,r],children:"Overview"}),o("div",{class:"panels",children:[o("div",{children:[o(Co,{gangs:n}),o(xo,{nodes:t,queues:r}),o(Lo,{shapes:i})]}),o("div",
{children:[o(No,{gangs:n}),o(Io,{gangs:n}),o(Oo,{instances:s})]})]})]})}function xo({nodes:e,queues:n}){let t=x(()=>pr(e.items),[e.items]),r=x(()=>hr(n.items),[
n.items]);return o("section",{children:[o("h2",{children:"Capacity"}),o(pn,{of:e}),ge(t.keys()).map(i=>{let{total:s,requested:a,unusable:c}=t.get(i),{promised:u,
reserved:d}=r.get(i)??{promised:0,reserved:0},l=m=>ie(i,m),p=[`${l(a)} of ${l(s)} requested`,c?`${l(c)} on nodes that take no pods`:"",u?`${l(u)} promised to ad\
mitted gangs`:"",d?`${l(d)} reserved for lost members`:""].filter(Boolean).join("; ");return o("div",{class:"measure",children:[o("div",{title:i,children:[te(i),
" ",o("strong",{children:[s?Math.round(100*a/s):0," %"]})]}),o(mn,{label:`${i}: ${p}`,whole:s,parts:[{kind:"used",value:a,title:"requested"},{kind:"kept",value:u+
d,title:"kept"},{kind:"unusable",value:c,title:"unusable"}]}),o("small",{children:p})]},i)})]})}function Co({gangs:e}){let n=x(()=>hn(e.items),[e.items]);return o(
"section",{children:[o("h2",{children:"Gangs"}),o("ul",{class:"counts",children:qe.map(t=>o("li",{children:o("a",{href:`${V("gangs")}?${new URLSearchParams({phase:t})}`,
children:[o("strong",{children:n.get(t)})," ",o(Ee,{phase:t})]})},t))})]})}function No({gangs:e}){let n=x(()=>mr(e.items),[e.items]);return o("section",{children:[
o("h2",{children:"Why gangs wait"}),e.freshness==="live"&&!n.length&&o(W,{children:"No gang waits."}),n.length>0&&o(z,{label:"Why gangs wait",children:o("table",
{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Reason"}),o("th",{scope:"col",class:"number",children:"Gangs"}),o("th",{scope:"co\
l",class:"number",children:"Members"}),o("th",{scope:"col",children:"Largest"})]})}),o("tbody",{children:n.slice(0,Hn).map(t=>o("tr",{children:[o("th",{scope:"r\
ow",children:o("a",{href:`${V("gangs")}?${new URLSearchParams({search:t.reason})}`,children:t.reason})}),o("td",{class:"number",children:t.gangs}),o("td",{class:"\
number",children:t.members}),o("td",{children:o(se,{place:N(t.largest),title:ee(t.largest)})})]},t.reason))})]})})]})}function Io({gangs:e}){let n=x(()=>gr(e.items,
Hn),[e.items]);return n.length?o("section",{children:[o("h2",{children:"Gangs that hold what others lack"}),o(z,{label:"Gangs that hold what others lack",children:o(
"table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Gang"}),o("th",{scope:"col",class:"number",children:"Waiting gangs"}),o("\
th",{scope:"col",class:"number",children:"Their members"})]})}),o("tbody",{children:n.map(t=>o("tr",{children:[o("th",{scope:"row",children:o(se,{place:t.gang})}),
o("td",{class:"number",children:t.gangs}),o("td",{class:"number",children:t.members})]},t.gang))})]})})]}):null}function Lo({shapes:e}){return o("section",{children:[
o("h2",{children:"Largest gangs that fit now"}),o(pn,{of:e}),e.freshness==="live"&&e.items.length===0&&o(W,{children:"There are no gangs, so there are no shapes\
 of pods to count."}),e.items.length>0&&o(z,{label:"Largest gangs that fit now",children:o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"\
col",children:"Pods that request"}),o("th",{scope:"col",class:"number",children:"Anywhere"}),o("th",{scope:"col",class:"number",children:"One domain"}),o("th",{
scope:"col",class:"number",children:"One node"}),o("th",{scope:"col",class:"number",children:"Unfragmented"})]})}),o("tbody",{children:e.items.slice(0,Hn).map(({
metadata:n,status:t})=>o("tr",{children:[o("th",{scope:"row",children:[ge(Object.keys(t.requests)).map(r=>`${t.requests[r]} ${te(r)}`).join(", "),Object.entries(
t.nodeSelector??{}).map(([r,i])=>o("small",{children:[" ",r,"=",i]},r))]}),o("td",{class:"number",children:t.fits}),o("td",{class:"number",children:t.tiers?.length?
Math.max(...t.tiers.map(r=>r.pods)):"\u2013"}),o("td",{class:"number",children:t.fitsOnNode}),o("td",{class:"number",children:o(_e,{resource:"pods",value:t.unfragmented})})]},
n.name))})]})})]})}function Oo({instances:e}){let n=oe();return o("section",{children:[o("h2",{children:"Services"}),o(pn,{of:e}),o("ul",{class:"services",children:e.
items.map(({metadata:t,status:r})=>o("li",{children:[o("span",{class:`badge ${r.ready?"good":"bad"}`,children:r.ready?"ready":"not ready"})," ",r.service,!r.active&&
" (standby)"," ",o("small",{children:[r.version,", ",ue(r.started,n)]}),(r.notReady??[]).map(i=>o("small",{children:[" ",i]},i))]},t.name))})]})}var Po=50;function Ir({route:e}){let{queues:n,gangs:t}=j(),r=O(n),i=O(t),s=x(()=>tr(r.items),[r.items]),a=x(()=>$o(i.items),[i.items]),c=e.query.get("queue")??"";
return o(T,{children:[o(Q,{of:[r,i],children:"Queues"}),r.freshness==="live"&&!s.length&&o(W,{children:"There are no queues."}),s.length>0&&o(z,{label:"Queues",
children:o("table",{class:"tree",children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",class:"number",children:"\
Running"}),o("th",{scope:"col",class:"number",children:"Waiting"}),o("th",{scope:"col",children:"Resource"}),o("th",{scope:"col",class:"wide",children:"Share"}),
o("th",{scope:"col",class:"number",children:"Used"}),o("th",{scope:"col",class:"number",children:"Deserved"}),o("th",{scope:"col",class:"number",children:"Borro\
wed"}),o("th",{scope:"col",class:"number",children:"Limit"}),o("th",{scope:"col",class:"number",children:"Waited for"})]})}),s.map(({queue:u,depth:d})=>o(Ro,{queue:u,
depth:d,open:c===u.metadata.name,waiting:a.get(u.metadata.name)??[]},u.metadata.name))]})}),o(Uo,{})]})}function $o(e){let n=new Map;for(let t of e){if(!t.status.
pending)continue;let r=n.get(t.status.queue);r?r.push(t):n.set(t.status.queue,[t])}for(let t of n.values())t.sort((r,i)=>Qn(r)<Qn(i)?-1:1);return n}function Qn(e){
return e.status.pending?.since??e.metadata.creationTimestamp??""}function Ro({queue:e,depth:n,open:t,waiting:r}){let{name:i}=e.metadata,{status:s}=e,a=ln(e),u=ge(
a.map(p=>p.resource)).map(p=>a.find(m=>m.resource===p)),d=u.length?u:[void 0],l=[s.exists?"":"no such queue",s.state&&s.state!=="Open"?s.state:"",s.strict?"stri\
ct order":"",s.reclaimable?"":"not reclaimable",`weight ${s.weight}`].filter(Boolean).join(", ");return o("tbody",{children:[d.map((p,m)=>o("tr",{children:[m===
0&&o(T,{children:[o("th",{scope:"rowgroup",rowSpan:d.length,children:o("span",{class:"indent",style:{paddingLeft:`${Math.min(n,8)*1.25}rem`},children:[o("button",
{type:"button",class:"disclosure","aria-expanded":t,onClick:()=>F("queue",t?"":i),children:i}),o("small",{children:l})]})}),o("td",{class:"number",rowSpan:d.length,
children:s.gangs.running}),o("td",{class:"number",rowSpan:d.length,children:s.gangs.waiting+s.gangs.notAdmitted})]}),p?o(Mo,{share:p}):o("td",{colSpan:7})]},p?.
resource??"")),t&&o("tr",{children:o("td",{colSpan:10,class:"details",children:o(Fo,{queue:e,waiting:r})})})]})}function Mo({share:e}){let{resource:n,used:t,wanted:r,
promised:i,reserved:s,deserved:a,limit:c,borrowed:u}=e,d=t-u,l=m=>ie(n,m),p=`${n}: uses ${l(t)}${a===void 0?"":`, deserves ${l(a)}`}${c===void 0?"":`, at most ${l(
c)}`}, waits for ${l(r)}`;return o(T,{children:[o("td",{title:n,children:te(n)}),o("td",{class:"wide",children:o(mn,{label:p,whole:Math.max(c??0,a??0,t+i+s+r),parts:[
{kind:"used",value:d,title:"used"},{kind:"borrowed",value:u,title:"borrowed"},{kind:"kept",value:i+s,title:"kept"},{kind:"wanted",value:r,title:"waited for"}],marks:a===
void 0?[]:[{kind:"deserved",value:a,title:"deserved"}]})}),o("td",{class:"number",children:o(_e,{resource:n,value:t})}),o("td",{class:"number",children:o(_e,{resource:n,
value:a})}),o("td",{class:"number",children:o(_e,{resource:n,value:u||void 0})}),o("td",{class:"number",children:o(_e,{resource:n,value:c})}),o("td",{class:"num\
ber",children:o(_e,{resource:n,value:r||void 0})})]})}function Fo({queue:e,waiting:n}){let t=oe(),{name:r}=e.metadata;return o(T,{children:[e.status.message&&o(
"p",{children:e.status.message}),e.status.holders&&o("p",{children:["Held mostly by: ",o(he,{named:e.status.holders})]}),o(Do,{queue:e,now:t}),!n.length&&o("p",
{children:"No gang that you may see waits in this queue itself."}),n.length>0&&o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"\
Waiting gang"}),o("th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",children:"Since"}),o("th",{scope:"col",children:"Why"})]})}),o("tbod\
y",{children:n.slice(0,Po).map(i=>o("tr",{children:[o("td",{children:o(se,{place:N(i),title:ee(i)})}),o("td",{class:"number",children:i.status.members.pending}),
o("td",{children:ue(Qn(i),t)}),o("td",{class:"sentence",children:i.status.pending?.message})]},N(i)))})]}),o("p",{children:o("a",{href:`${V("gangs")}?${new URLSearchParams(
{queue:r})}`,children:["All gangs of ",r]})})]})}function Do({queue:e,now:n}){let{queueHistory:t}=j(),{name:r}=e.metadata,i=t.since,s=ge((e.status.resources??[]).
map(a=>a.resource));return i===void 0||!s.length?null:o("section",{children:[o("h2",{children:["Since this page was opened ",o("small",{children:[fn(new Date(i).
toISOString()),", ",Ue(n-i)," ago"]})]}),o("ul",{class:"sparklines",children:s.map(a=>o(Bo,{resource:a,lines:t.lines(r,a),from:i,to:n},a))}),o("p",{class:"empty",
children:"Used, and as a dashed line deserved, while this page or the overview was shown. Nothing is known of gaps."})]})}var[Cr,Nr]=[240,32];function Bo({resource:e,
lines:n,from:t,to:r}){let i=sr(n,t,Math.max(r,n.at(-1)?.at(-1)?.at??r),Cr,Nr),s=ar(e,n);return o("li",{title:e,children:[o("svg",{role:"img","aria-label":s,viewBox:`\
0 0 ${Cr} ${Nr}`,preserveAspectRatio:"none",children:[o("path",{class:"area",d:i.area}),o("path",{class:"line",d:i.used}),o("path",{class:"line share",d:i.deserved})]}),
o("span",{"aria-hidden":"true",children:s})]})}function Uo(){return o("ul",{class:"legend","aria-label":"Colours of the shares",children:[o("li",{children:[o("s\
pan",{class:"used"})," used"]}),o("li",{children:[o("span",{class:"borrowed"})," used beyond its deserved share"]}),o("li",{children:[o("span",{class:"kept"}),"\
 kept for admitted gangs and lost members"]}),o("li",{children:[o("span",{class:"wanted"})," waited for"]}),o("li",{children:[o("span",{class:"mark"})," deserve\
d share"]})]})}var Go=new Set(["Starting","Running","Unknown"]),qo=new Set(["Pending","Inqueue"]),Lr=["evicted","failed","deleted","succeeded"];function Or(e,n){let t=new Map(
n.map(u=>[N(u),u])),r=Ko(e),i=new Set,s=[],a=new Map,c=new Map;for(let u of e){let{status:d}=u;if(d.action!=="Bind")continue;let l=sn(u,t),p=Date.parse(d.time);
l&&!a.has(l)&&a.set(l,p);let m=new Map;for(let g of d.pods??[])i.has(g.uid)||m.set(g.node??"",[...m.get(g.node??"")??[],g.uid]),i.add(g.uid);let f=new Set(l&&Go.
has(l.status.phase)?(l.status.placement??[]).map(g=>g.node):[]);for(let[g,_]of m){let h=jo(p,_.map(v=>r.get(v)),f.has(g));l&&c.set(l,Math.max(c.get(l)??0,h.end)),
s.push({gang:d.gang,title:l?ee(l):Ho(u),node:g,start:p,pods:_.length,...h})}}for(let u of n)s.push(...Wo(u,a.get(u),c.get(u)??0));return s.sort((u,d)=>u.start-d.
start)}function Ko(e){let n=new Map,t=new Set;for(let{status:r}of e)for(let i of r.pods??[])r.action==="Evict"?(t.add(i.uid),n.has(i.uid)||n.set(i.uid,{at:Date.
parse(r.time),how:"evicted"})):i.ended&&n.set(i.uid,{at:Date.parse(i.ended),how:(i.end??"").toLowerCase()});for(let r of t){let i=n.get(r);i?.how==="deleted"&&n.
set(r,{...i,how:"evicted"})}return n}function jo(e,n,t){let r=n.filter(i=>i!==void 0&&i.at>=e);if(r.length===n.length){let i=Lr.find(s=>r.some(a=>a.how===s))??"";
return{end:Math.max(...r.map(s=>s.at)),ended:i==="succeeded"?"done":"known",how:i}}return t?{end:1/0,ended:"now",how:""}:{end:e,ended:"unknown",how:""}}function*Wo(e,n,t){
let{metadata:r,status:i}=e;if(!r.creationTimestamp)return;let s=Date.parse(r.creationTimestamp),a={gang:N(e),title:ee(e),node:"",pods:i.members.total,ended:"wai\
ted"};n!==void 0&&n>s&&(yield{...a,start:s,end:n,how:""}),qo.has(i.phase)&&!i.placement?.length&&(yield{...a,start:Math.max(s,Number.isFinite(t)?t:0),end:1/0,how:i.
pending?.reason??""})}function Ho({status:e}){let n=e.gang.indexOf("/");return`${e.gang.slice(0,n)}/${e.title||e.gang.slice(n+1)}`}function Pr(e,n,t){let r=t.toLowerCase().
split(/\s+/).filter(Boolean),i=new Map;for(let a of e){if(n==="node"&&a.ended==="waited")continue;let c=`${a.title} ${a.gang} ${a.node}`.toLowerCase();if(!r.every(
p=>c.includes(p)))continue;let u=n==="gang"?a.title:a.node,d=i.get(u)??{name:u,intervals:[]},l=d.intervals.at(-1);if(n==="gang"&&l&&l.gang===a.gang&&l.start===a.
start&&l.ended===a.ended){let p=Lr.find(m=>m===l.how||m===a.how)??"";d.intervals[d.intervals.length-1]={...l,pods:l.pods+a.pods,end:Math.max(l.end,a.end),node:"",
how:p}}else d.intervals.push(a);i.set(u,d)}let s=a=>a.intervals.at(-1).start;return[...i.values()].sort((a,c)=>n==="node"?a.name<c.name?-1:1:s(c)-s(a)||(a.name<
c.name?-1:1))}function $r(e,n,t){if(e.start>=t||e.end<n||t<=n)return;let r=Math.max(0,(e.start-n)/(t-n)),i=Math.min(1,(e.end-n)/(t-n));return{left:r*100,width:Math.
max(0,i-r)*100}}var Qo=[1,5,15,60,300,900,3600,10800,21600,86400,604800];function Rr(e,n){let t=(Qo.find(i=>(n-e)/(i*1e3)<=10)??2592e3)*1e3,r=[];for(let i=Math.
ceil(e/t)*t;i<n&&r.length<100;i+=t)r.push(i);return r}var Mr=100,Fr="all",Dr={"15m":9e5,"1h":36e5,"6h":216e5,"24h":864e5},Br=1e4;function Ur({route:e}){let n=j(),t=O(n.decisions),r=O(n.gangs),i=oe(2e3),s=e.query.get(
"by")==="node"?"node":"gang",a=e.query.get("length")??Fr,c=e.query.get("filter")??"",[u,d]=I(Mr),[l,p]=I(),m=x(()=>Or(t.items,r.items),[t.items,r.items]),f=x(()=>Pr(
m,s,c),[m,s,c]),[g,_]=l??[i-(Dr[a]??Math.max(Br,i-(m[0]?.start??i))),i],h=(y,P=.5)=>{let B=Math.max(Br,(_-g)*y),J=g+(_-g)*P;p([J-B*P,J+B*(1-P)])},v=y=>p([g+(_-g)*
y,_+(_-g)*y]),S=y=>{let P={"+":()=>h(.5),"-":()=>h(2),ArrowLeft:()=>v(-.25),ArrowRight:()=>v(.25),0:()=>p(void 0)}[y.key];!P||y.ctrlKey||y.metaKey||y.altKey||(y.
preventDefault(),P())},w=y=>{if(!y.ctrlKey)return;y.preventDefault();let P=y.currentTarget.getBoundingClientRect(),B=Math.min(1,Math.max(0,(y.clientX-P.left-P.width*
.2)/(P.width*.8)));h(y.deltaY>0?1.25:.8,B)};return o(T,{children:[o(Q,{of:[t,r],children:"Timeline"}),o("div",{class:"filters",children:[o(Se,{label:"Rows",value:s,
options:["gang","node"],onChoice:y=>F("by",y)}),o(Se,{label:"Length",value:a,options:[...Object.keys(Dr),Fr],onChoice:y=>{p(void 0),F("length",y)}}),o("label",{
children:["Filter ",o("input",{type:"search",value:c,onInput:y=>F("filter",y.currentTarget.value)})]}),o("span",{role:"group","aria-label":"Zoom",children:[o("b\
utton",{type:"button",onClick:()=>h(.5),"aria-label":"Zoom in",children:"+"})," ",o("button",{type:"button",onClick:()=>h(2),"aria-label":"Zoom out",children:"\u2212"}),
" ",o("button",{type:"button",onClick:()=>v(-.25),"aria-label":"Earlier",children:"\u2190"})," ",o("button",{type:"button",onClick:()=>v(.25),"aria-label":"Late\
r",children:"\u2192"})," ",o("button",{type:"button",onClick:()=>p(void 0),disabled:!l,children:"Now"})]})]}),t.freshness==="live"&&!f.length&&o(W,{children:"No\
 decision that you may see is like this."}),f.length>0&&o("div",{class:"timeline",role:"region","aria-label":"Timeline; + and \u2212 zoom, arrow keys move, 0 resets",
tabIndex:0,onKeyDown:S,onWheel:w,children:[o(Yo,{from:g,to:_}),o("ul",{children:f.slice(0,u).map(y=>o(Vo,{row:y,by:s,from:g,to:_,now:i},y.name))})]}),f.length>u&&
o("p",{children:o("button",{type:"button",onClick:()=>d(u+4*Mr),children:["Show more: ",f.length-u," are left"]})}),o("p",{class:"empty",children:"The newest 10\
,000 decisions, and the gangs that exist. Hatched: a gang waited. A short bar with an open end: the gang is gone, and the service that answers started after its\
 end."})]})}function Yo({from:e,to:n}){let t=n-e>864e5;return o("div",{class:"axis","aria-hidden":"true",children:[o("span",{children:"UTC"}),o("div",{class:"tr\
ack",children:Rr(e,n).map(r=>o("span",{style:{left:`${100*(r-e)/(n-e)}%`},children:new Date(r).toISOString().slice(t?5:11,n-e<12e4?19:16).replace("T"," ")},r))})]})}
function Vo({row:e,by:n,from:t,to:r,now:i}){return o("li",{children:[n==="gang"?o("a",{href:Be(e.intervals.at(-1).gang),children:e.name}):o("span",{children:e.name}),
o("div",{class:"track",children:e.intervals.map(s=>o(zo,{one:s,from:t,to:r,now:i},`${s.gang} ${s.start} ${s.ended}`))})]})}function zo({one:e,from:n,to:t,now:r}){
let i=Math.min(e.end,Math.max(r,e.start)),s=$r({...e,end:i},n,t);if(!s)return null;let a=Ue(i-e.start),c=e.how?`, then ${e.how}`:"",u={waited:`waited for ${a}${e.
how?`: ${e.how}`:""}`,now:`for ${a}`,done:`for ${a}${c}`,known:`for ${a}${c}`,unknown:"end unknown"},d=`${e.title}${e.node?` on ${e.node}`:""}: ${e.pods} pods f\
rom ${new Date(e.start).toISOString().slice(0,19)}Z, ${u[e.ended]}`;return o("a",{class:`interval ${e.ended}`,href:Be(e.gang),title:d,"aria-label":d,tabIndex:-1,
style:{left:`${s.left}%`,width:e.ended==="unknown"?"1.5rem":`${s.width}%`,color:Ke(e.gang)}})}var k=Symbol("NOT_RESOLVED");function G(e,n){return{tagName:e,nodeKind:"scalar",implicit:n.implicit??!1,matchByTagPrefix:n.matchByTagPrefix??!1,implicitFirstChars:n.
implicitFirstChars??null,resolve:n.resolve,identify:n.identify,represent:n.represent??(t=>String(t)),representTagName:n.representTagName??(()=>e)}}function st(e,n){
let t=n.finalize===void 0;return{tagName:e,nodeKind:"sequence",implicit:!1,matchByTagPrefix:n.matchByTagPrefix??!1,create:n.create,addItem:n.addItem,finalize:n.
finalize??(r=>r),carrierIsResult:t,identify:n.identify,represent:n.represent??(r=>r),representTagName:n.representTagName??(()=>e)}}function vn(e,n){let t=n.finalize===
void 0;return{tagName:e,nodeKind:"mapping",implicit:!1,matchByTagPrefix:n.matchByTagPrefix??!1,create:n.create,addPair:n.addPair,has:n.has,keys:n.keys,get:n.get,
finalize:n.finalize??(r=>r),carrierIsResult:t,identify:n.identify,represent:n.represent??(r=>r),representTagName:n.representTagName??(()=>e)}}var Xo=G("tag:yaml\
.org,2002:str",{resolve:e=>e,identify:e=>typeof e=="string"}),Jo=["","~","null","Null","NULL"],Zo=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["",
"~","n","N"],resolve:e=>Jo.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),es=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["n"],
resolve:(e,n)=>e==="null"||n&&e===""?null:k,identify:e=>e===null,represent:()=>"null"}),ns=["","~","null","Null","NULL"],ts=G("tag:yaml.org,2002:null",{implicit:!0,
implicitFirstChars:["","~","n","N"],resolve:e=>ns.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),rs=["true","True","TRUE"],is=["false","Fals\
e","FALSE"],os=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:["t","T","f","F"],resolve:e=>rs.indexOf(e)!==-1?!0:is.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),ss=["true"],as=["false"],cs=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:[
"t","f"],resolve:e=>ss.indexOf(e)!==-1?!0:as.indexOf(e)!==-1?!1:k,identify:e=>Object.prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"fals\
e"}),ls=["true","True","TRUE","y","Y","yes","Yes","YES","on","On","ON"],us=["false","False","FALSE","n","N","no","No","NO","off","Off","OFF"],ds=G("tag:yaml.org\
,2002:bool",{implicit:!0,implicitFirstChars:["y","Y","n","N","t","T","f","F","o","O"],resolve:e=>ls.indexOf(e)!==-1?!0:us.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),fs=new RegExp("^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+)$"),ps=new RegExp("^(?:[-\
+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function ms(e){let n=e,t=1;return(n[0]==="-"||n[0]==="+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith(
"0b")?t*parseInt(n.slice(2),2):n.startsWith("0o")?t*parseInt(n.slice(2),8):n.startsWith("0x")?t*parseInt(n.slice(2),16):t*parseInt(n,10)}function gs(e,n){if(n){
if(!ps.test(e))return k}else if(!fs.test(e))return k;let t=ms(e);return Number.isFinite(t)?t:k}var ni=G("tag:yaml.org,2002:int",{implicit:!0,implicitFirstChars:[
"-","+",..."0123456789"],resolve:gs,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(10)}),hs=new RegExp(
"^-?(?:0|[1-9][0-9]*)$"),_s=new RegExp("^(?:[-+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function bs(e){let n=e,t=1;return(n[0]==="-"||n[0]===
"+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith("0b")?t*parseInt(n.slice(2),2):n.startsWith("0o")?t*parseInt(n.slice(2),8):n.startsWith("0x")?t*parseInt(n.
slice(2),16):t*parseInt(n,10)}function ys(e,n){if(n){if(!_s.test(e))return k}else if(!hs.test(e))return k;let t=bs(e);return Number.isFinite(t)?t:k}var vs=G("ta\
g:yaml.org,2002:int",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:ys,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf(
"e")<0,represent:e=>e.toString(10)}),ws=new RegExp("^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?(?:0|[1-9][0-9\
_]*))$");function Ss(e){let n=e.replace(/_/g,""),t=1;if((n[0]==="-"||n[0]==="+")&&(n[0]==="-"&&(t=-1),n=n.slice(1)),n.startsWith("0b"))return t*parseInt(n.slice(
2),2);if(n.startsWith("0x"))return t*parseInt(n.slice(2),16);if(n.includes(":")){let r=0;for(let i of n.split(":"))r=r*60+Number(i);return t*r}return n!=="0"&&n[0]===
"0"?t*parseInt(n,8):t*parseInt(n,10)}function Ts(e){if(!ws.test(e))return k;let n=Ss(e);return Number.isFinite(n)?n:k}var et=G("tag:yaml.org,2002:int",{implicit:!0,
implicitFirstChars:["-","+",..."0123456789"],resolve:Ts,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(
10)}),As=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),ks=new RegExp(
"^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Es(e){if(!As.test(e))return k;let n=e.toLowerCase(),t=n[0]==="-"?-1:1;if("+-".includes(n[0])&&(n=n.
slice(1)),n===".inf")return t===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(n===".nan")return NaN;let r=t*parseFloat(n);return Number.isFinite(r)||ks.
test(e)?r:k}function xs(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))
return"-0.0";let n=e.toString(10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var ti=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",
".",..."0123456789"],resolve:Es,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:xs}),Cs=new RegExp(
"^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$"),Ns=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+\
]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Is(e,n){if(n){if(!Ns.test(e))return k;let r=e.toLowerCase(),i=r[0]==="-"?-1:1;if("+-".includes(r[0])&&(r=r.
slice(1)),r===".inf")return i===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(r===".nan")return NaN;let s=i*parseFloat(r);return Number.isFinite(s)?s:k}
if(!Cs.test(e))return k;let t=Number(e);return Number.isFinite(t)?t:k}function Ls(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===
Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let n=e.toString(10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var Os=G("tag:ya\
ml.org,2002:float",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:Is,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(
10).indexOf("e")>=0),represent:Ls}),Ps=new RegExp("^(?:[-+]?(?:(?:[0-9][0-9_]*)?\\.[0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\\
.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),$s=new RegExp("^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Rs(e){if(!Ps.test(e))return k;let n=e.toLowerCase().
replace(/_/g,""),t=n[0]==="-"?-1:1;if("+-".includes(n[0])&&(n=n.slice(1)),n===".inf")return t===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(n===".nan")
return NaN;let r=0;if(n.includes(":")){for(let i of n.split(":"))r=r*60+Number(i);r*=t}else r=t*parseFloat(n);return Number.isFinite(r)||$s.test(e)?r:k}function Ms(e){
if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let n=e.toString(
10);return/^[-+]?[0-9]+e/.test(n)?n.replace("e",".e"):n}var nt=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",".",..."0123456789"],resolve:Rs,
identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:Ms}),Fs=G("tag:yaml.org,2002:merge",{implicit:!0,
implicitFirstChars:["<"],resolve:(e,n)=>e==="<<"||n&&e===""?"<<":k,identify:()=>!1}),Ds=/^[A-Za-z0-9+/]*={0,2}$/;function Bs(e){let n=e.replace(/\s/g,"");if(n.length%
4!==0||!Ds.test(n))return k;let t=atob(n),r=new Uint8Array(t.length);for(let i=0;i<t.length;i++)r[i]=t.charCodeAt(i);return r}function Us(e){let n="";for(let t=0;t<
e.length;t++)n+=String.fromCharCode(e[t]);return btoa(n)}var Gs=G("tag:yaml.org,2002:binary",{resolve:Bs,identify:e=>Object.prototype.toString.call(e)==="[objec\
t Uint8Array]",represent:Us}),qs=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9])-([0-9][0-9])$"),Ks=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9]?)-([0-9][0-\
9]?)(?:[Tt]|[ \\t]+)([0-9][0-9]?):([0-9][0-9]):([0-9][0-9])(?:\\.([0-9]*))?(?:[ \\t]*(Z|([-+])([0-9][0-9]?)(?::([0-9][0-9]))?))?$");function Gr(e,n,t,r=0,i=0,s=0,a=0){
let c=new Date(Date.UTC(e,n,t,r,i,s,a));return c.setUTCFullYear(e,n,t),c}function js(e){let n=qs.exec(e);if(n===null&&(n=Ks.exec(e)),n===null)return k;let t=+n[1],
r=+n[2]-1,i=+n[3];if(!n[4]){let l=Gr(t,r,i);return l.getUTCFullYear()!==t||l.getUTCMonth()!==r||l.getUTCDate()!==i?k:l}let s=+n[4],a=+n[5],c=+n[6],u=0;if(s>23||
a>59||c>59)return k;if(n[7]){let l=n[7].slice(0,3);for(;l.length<3;)l+="0";u=+l}let d=Gr(t,r,i,s,a,c,u);if(d.getUTCFullYear()!==t||d.getUTCMonth()!==r||d.getUTCDate()!==
i)return k;if(n[9]){let l=+n[10],p=+(n[11]||0);if(l>23||p>59)return k;let m=(l*60+p)*6e4;d.setTime(d.getTime()-(n[9]==="-"?-m:m))}return d}var Ws=G("tag:yaml.or\
g,2002:timestamp",{implicit:!0,implicitFirstChars:[..."0123456789"],resolve:js,identify:e=>e instanceof Date,represent:e=>e.toISOString()}),Hs=st("tag:yaml.org,\
2002:seq",{create:()=>[],addItem:(e,n)=>{e.push(n)},identify:Array.isArray});function wn(e){if(e===null||typeof e!="object"||Array.isArray(e))return!1;let n=Object.
getPrototypeOf(e);return n===null||n===Object.prototype}function qr(e,n){let t={};for(let r of n)e[r]!==void 0&&(t[r]=e[r]);return t}var Qs=st("tag:yaml.org,200\
2:omap",{create:()=>({list:[],seen:new Set}),addItem:(e,n)=>{let t;if(n instanceof Map){if(n.size!==1)return"cannot resolve an ordered map item";t=n.keys().next().
value}else if(wn(n)){let r=Object.keys(n);if(r.length!==1)return"cannot resolve an ordered map item";t=r[0]}else return"cannot resolve an ordered map item";return e.
seen.has(t)?"duplicate key in ordered map":(e.seen.add(t),e.list.push(n),"")},finalize:e=>e.list,identify:()=>!1}),Ys=st("tag:yaml.org,2002:pairs",{create:()=>[],
addItem:(e,n)=>{if(n instanceof Map)return n.size!==1?"cannot resolve a pairs item":(e.push(n.entries().next().value),"");if(Object.prototype.toString.call(n)!==
"[object Object]")return"cannot resolve a pairs item";let t=n,r=Object.keys(t);return r.length!==1?"cannot resolve a pairs item":(e.push([r[0],t[r[0]]]),"")},identify:()=>!1}),
Vs=vn("tag:yaml.org,2002:map",{create:()=>({}),identify:wn,represent:e=>{let n=new Map;for(let t of Object.keys(e))n.set(t,e[t]);return n},addPair:(e,n,t)=>{if(n!==
null&&typeof n=="object")return"object-based map does not support complex keys";let r=String(n);return r==="__proto__"?Object.defineProperty(e,r,{value:t,enumerable:!0,
configurable:!0,writable:!0}):e[r]=t,""},has:(e,n)=>n!==null&&typeof n=="object"?!1:Object.prototype.hasOwnProperty.call(e,String(n)),keys:e=>Object.keys(e),get:(e,n)=>{
let t=String(n);return Object.prototype.hasOwnProperty.call(e,t)?e[t]:null}}),zs=vn("tag:yaml.org,2002:set",{create:()=>new Set,identify:e=>e instanceof Set,represent:e=>{
let n=new Map;for(let t of e)n.set(t,null);return n},addPair:(e,n,t)=>t!==null?"cannot resolve a set item":(e.add(n),""),has:(e,n)=>e.has(n),keys:e=>e.keys(),get:()=>null});
function Xs(){return{scalar:Object.create(null),sequence:Object.create(null),mapping:Object.create(null)}}function Js(){return{scalar:[],sequence:[],mapping:[]}}
function Zs(e){let n=[];for(let t of e){let r=n.length;for(let i=0;i<n.length;i++){let s=n[i];if(s.nodeKind===t.nodeKind&&s.tagName===t.tagName&&s.matchByTagPrefix===
t.matchByTagPrefix){r=i;break}}n[r]=t}return n}var Sn=class ri{tags;implicitScalarTags;implicitScalarByFirstChar;implicitScalarAnyFirstChar;defaultScalarTag;defaultSequenceTag;defaultMappingTag;exact;prefix;constructor(n){
let t=Zs(n),r=[],i=Xs(),s=Js();for(let l of t){if(l.nodeKind==="scalar"&&l.implicit){if(l.matchByTagPrefix)throw new Error("Implicit scalar tags cannot match by\
 tag prefix");r.push(l)}switch(l.nodeKind){case"scalar":l.matchByTagPrefix?s.scalar.push(l):i.scalar[l.tagName]=l;break;case"sequence":l.matchByTagPrefix?s.sequence.
push(l):i.sequence[l.tagName]=l;break;case"mapping":l.matchByTagPrefix?s.mapping.push(l):i.mapping[l.tagName]=l}}let a=r.filter(l=>l.implicitFirstChars===null),
c=new Set;for(let l of r)if(l.implicitFirstChars!==null)for(let p of l.implicitFirstChars)c.add(p);let u=new Map;for(let l of c)u.set(l,r.filter(p=>p.implicitFirstChars===
null||p.implicitFirstChars.indexOf(l)!==-1));let d=i.scalar["tag:yaml.org,2002:str"];if(!d)throw new Error("schema does not define the default scalar tag (tag:y\
aml.org,2002:str)");this.tags=t,this.implicitScalarTags=r,this.implicitScalarByFirstChar=u,this.implicitScalarAnyFirstChar=a,this.defaultScalarTag=d,this.defaultSequenceTag=
i.sequence["tag:yaml.org,2002:seq"],this.defaultMappingTag=i.mapping["tag:yaml.org,2002:map"],this.exact=i,this.prefix=s}lookupScalarTag(n){let t=this.exact.scalar[n];
if(t)return t;for(let r of this.prefix.scalar)if(n.startsWith(r.tagName))return r}lookupSequenceTag(n){let t=this.exact.sequence[n];if(t)return t;for(let r of this.
prefix.sequence)if(n.startsWith(r.tagName))return r}lookupMappingTag(n){let t=this.exact.mapping[n];if(t)return t;for(let r of this.prefix.mapping)if(n.startsWith(
r.tagName))return r}resolveImplicitScalarTag(n){let t=this.implicitScalarByFirstChar.get(n.charAt(0))??this.implicitScalarAnyFirstChar;for(let i of t){let s=i.resolve(
n,!1,i.tagName);if(s!==k)return{value:s,tag:i}}let r=this.defaultScalarTag;return{value:r.resolve(n,!1,r.tagName),tag:r}}withTags(...n){let t=[];for(let r of n)
t=t.concat(r);return new ri([...this.tags,...t])}},at=new Sn([Xo,Hs,Vs]),pu=new Sn([...at.tags,es,cs,vs,Os]),ea=new Sn([...at.tags,Zo,os,ni,ti]),na=new Sn([...at.
tags,ts,ds,et,nt,Ws,Fs,Gs,Qs,Ys,zs]),ta=na.withTags({...et,resolve:(e,n,t)=>{let r=et.resolve(e,n,t);return r===k?ni.resolve(e,n,t):r}},{...nt,resolve:(e,n,t)=>{
let r=nt.resolve(e,n,t);return r===k?ti.resolve(e,n,t):r}}),mu=vn("tag:yaml.org,2002:map",{create:()=>new Map,addPair:(e,n,t)=>(e.set(n,t),""),has:(e,n)=>e.has(
n),keys:e=>e.keys(),get:(e,n)=>e.get(n),identify:e=>e instanceof Map||wn(e),represent:e=>{if(e instanceof Map)return e;let n=new Map,t=e;for(let r of Object.keys(
t))n.set(r,t[r]);return n}});function Kr(e){if(Array.isArray(e)){let n=Array.prototype.slice.call(e);for(let t=0;t<n.length;t++){if(Array.isArray(n[t]))return null;
typeof n[t]=="object"&&Object.prototype.toString.call(n[t])==="[object Object]"&&(n[t]="[object Object]")}return String(n)}return typeof e=="object"&&Object.prototype.
toString.call(e)==="[object Object]"?"[object Object]":String(e)}var gu=vn("tag:yaml.org,2002:map",{create:()=>({}),identify:wn,represent:e=>{let n=new Map;for(let t of Object.
keys(e))n.set(t,e[t]);return n},addPair:(e,n,t)=>{let r=Kr(n);return r===null?"nested arrays are not supported inside keys":(r==="__proto__"?Object.defineProperty(
e,r,{value:t,enumerable:!0,configurable:!0,writable:!0}):e[r]=t,"")},has:(e,n)=>{let t=Kr(n);return t!==null&&Object.prototype.hasOwnProperty.call(e,t)},keys:e=>Object.
keys(e),get:(e,n)=>{let t=String(n);return Object.prototype.hasOwnProperty.call(e,t)?e[t]:null}}),ra={maxLength:79,indent:1,linesBefore:3,linesAfter:2};function Yn(e,n,t,r,i){
let s="",a="",c=Math.floor(i/2)-1;return r-n>c&&(s=" ... ",n=r-c+s.length),t-r>c&&(a=" ...",t=r+c-a.length),{str:s+e.slice(n,t).replace(/\t/g,"\u2192")+a,pos:r-
n+s.length}}function Vn(e,n){return" ".repeat(Math.max(n-e.length,0))+e}function ia(e,n){if(!e.buffer)return null;let t={...ra,...n},r=/\r?\n|\r|\0/g,i=[0],s=[],
a,c=-1;for(;a=r.exec(e.buffer);)s.push(a.index),i.push(a.index+a[0].length),e.position<=a.index&&c<0&&(c=i.length-2);c<0&&(c=i.length-1);let u="",d=Math.min(e.line+
t.linesAfter,s.length).toString().length,l=t.maxLength-(t.indent+d+3);for(let m=1;m<=t.linesBefore&&!(c-m<0);m++){let f=Yn(e.buffer,i[c-m],s[c-m],e.position-(i[c]-
i[c-m]),l);u=`${" ".repeat(t.indent)}${Vn((e.line-m+1).toString(),d)} | ${f.str}
${u}`}let p=Yn(e.buffer,i[c],s[c],e.position,l);u+=`${" ".repeat(t.indent)}${Vn((e.line+1).toString(),d)} | ${p.str}
`,u+=`${"-".repeat(t.indent+d+3+p.pos)}^
`;for(let m=1;m<=t.linesAfter&&!(c+m>=s.length);m++){let f=Yn(e.buffer,i[c+m],s[c+m],e.position-(i[c]-i[c+m]),l);u+=`${" ".repeat(t.indent)}${Vn((e.line+m+1).toString(),
d)} | ${f.str}
`}return u.replace(/\n$/,"")}function jr(e,n){let t="";return e.mark?(e.mark.name&&(t+=`in "${e.mark.name}" `),t+=`(${e.mark.line+1}:${e.mark.column+1})`,!n&&e.
mark.snippet&&(t+=`

${e.mark.snippet}`),`${e.reason} ${t}`):e.reason}var We=class ii extends Error{reason;mark;constructor(n,t){super(),this.name="YAMLException",this.reason=n,this.
mark=t,this.message=jr(this,!1),Error.captureStackTrace&&Error.captureStackTrace(this,this.constructor)}toString(n){return`${this.name}: ${jr(this,n)}`}static throwAt(n,t,r,i=""){
let s=0,a=0;for(let u=0;u<t;u++){let d=n.charCodeAt(u);d===10?(s++,a=u+1):d===13&&(s++,n.charCodeAt(u+1)===10&&u++,a=u+1)}let c={name:i,buffer:n,position:t,line:s,
column:t-a};throw c.snippet=ia(c),new ii(r,c)}},L={DOCUMENT:1,SEQUENCE:2,MAPPING:3,SCALAR:4,ALIAS:5,POP:6},A={PLAIN:1,SINGLE_QUOTED:2,DOUBLE_QUOTED:3,LITERAL_BLOCK:4,
FOLDED_BLOCK:5},be={BLOCK:1,FLOW:2},X={CLIP:1,STRIP:2,KEEP:3},oa=-1;function Wr(e){switch(e){case 48:return"\0";case 97:return"\x07";case 98:return"\b";case 116:
return"	";case 9:return"	";case 110:return`
`;case 118:return"\v";case 102:return"\f";case 114:return"\r";case 101:return"\x1B";case 32:return" ";case 34:return'"';case 47:return"/";case 92:return"\\";case 78:
return"\x85";case 95:return"\xA0";case 76:return"\u2028";case 80:return"\u2029";default:return""}}var oi=new Array(256),si=new Array(256);for(let e=0;e<256;e++)
oi[e]=Wr(e)?1:0,si[e]=Wr(e);function sa(e){return e<=65535?String.fromCharCode(e):String.fromCharCode((e-65536>>10)+55296,(e-65536&1023)+56320)}function aa(e){return e>=
48&&e<=57?e-48:(e|32)-97+10}function ca(e){return e===120?2:e===117?4:8}function _n(e,n,t){let r=0;for(;n<t;){let i=e.charCodeAt(n);if(i===10)r++,n++;else if(i===
13)r++,n++,e.charCodeAt(n)===10&&n++;else if(i===32||i===9)n++;else break}return{position:n,breaks:r}}function ct(e){return e===1?" ":`
`.repeat(e-1)}function la(e,n,t){let r="",i=n,s=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===10||c===13){r+=e.slice(s,a);let u=_n(e,i,t);r+=ct(u.breaks),i=s=a=
u.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,a)}function ua(e,n,t){let r="",i=n,s=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===39)r+=e.slice(s,i)+
"'",i+=2,s=a=i;else if(c===10||c===13){r+=e.slice(s,a);let u=_n(e,i,t);r+=ct(u.breaks),i=s=a=u.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,t)}function da(e,n,t){
let r="",i=n,s=n,a=n;for(;i<t;){let c=e.charCodeAt(i);if(c===92){r+=e.slice(s,i),i++;let u=e.charCodeAt(i);if(u===10||u===13)i=_n(e,i,t).position;else if(u<256&&
oi[u])r+=si[u],i++;else{let d=ca(u),l=0;for(;d>0;d--){i++;let p=aa(e.charCodeAt(i));l=(l<<4)+p}r+=sa(l),i++}s=a=i}else if(c===10||c===13){r+=e.slice(s,a);let u=_n(
e,i,t);r+=ct(u.breaks),i=s=a=u.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,t)}function Hr(e,n,t,r,i,s){let a=r<0?0:r,c=e.slice(n,t).replace(/\r\n?/g,
`
`),u=c===""?[]:(c.endsWith(`
`)?c.slice(0,-1):c).split(`
`),d="",l=!1,p=0,m=!1;for(let f of u){let g=0;for(;g<a&&f.charCodeAt(g)===32;)g++;if(r<0||g>=f.length){p++;continue}let _=f.slice(a),h=_.charCodeAt(0);s?h===32||
h===9?(m=!0,d+=`
`.repeat(l?1+p:p)):m?(m=!1,d+=`
`.repeat(p+1)):p===0?l&&(d+=" "):d+=`
`.repeat(p):d+=`
`.repeat(l?1+p:p),d+=_,l=!0,p=0}return i===X.KEEP?d+=`
`.repeat(l?1+p:p):i!==X.STRIP&&l&&(d+=`
`),d}function fa(e,n){if(n.valueStart===oa)return"";let{valueStart:t,valueEnd:r}=n;if(n.fast)return e.slice(t,r);switch(n.style){case A.SINGLE_QUOTED:return ua(
e,t,r);case A.DOUBLE_QUOTED:return da(e,t,r);case A.LITERAL_BLOCK:return Hr(e,t,r,n.indent,n.chomping,!1);case A.FOLDED_BLOCK:return Hr(e,t,r,n.indent,n.chomping,
!0);default:return la(e,t,r)}}var pa=Object.assign(Object.create(null),{"!":"!","!!":"tag:yaml.org,2002:"}),ma="-#;/?:@&=+$_.~*'()",hu=ma+"!,[]";function zn(e){let n="",t=0;for(;t<e.length;){if(e.charCodeAt(t)!==37){n+=e[t++];continue}let r=parseInt(e.slice(t+1,t+3),16);if(t+=3,r>=192){let i=r<224?1:r<240?
2:3;for(r&=(1<<6-i)-1;i-- >0;)r=r<<6|parseInt(e.slice(t+1,t+3),16)&63,t+=3}r<65536?n+=String.fromCharCode(r):(r-=65536,n+=String.fromCharCode(55296|r>>10,56320|
r&1023))}return n}function ai(e,n){if(e.startsWith("!<")&&e.endsWith(">"))return zn(e.slice(2,-1));let t=e.indexOf("!",1),r=t===-1?"!":e.slice(0,t+1);return zn(
n?.[r]??pa[r]??r)+zn(e.slice(r.length))}var xe=-1,ga="tag:yaml.org,2002:merge",lt={filename:"",schema:ea,json:!1,maxTotalMergeKeys:1e4,maxAliases:-1};function ha(e){return"tagStart"in e&&e.tagStart!==
xe?e.tagStart:"anchorStart"in e&&e.anchorStart!==xe?e.anchorStart:"valueStart"in e&&e.valueStart!==xe?e.valueStart:"start"in e?e.start:0}function D(e,n){We.throwAt(
e.source,e.position,n,e.filename)}function ci(e,n,t,r){try{return t.finalize(r)}catch(i){if(i instanceof We)throw i;We.throwAt(e.source,n,i instanceof Error?i.message:
String(i),e.filename)}}function _a(e,n){let t=fa(e.source,n),r=n.tagStart===xe?"":e.source.slice(n.tagStart,n.tagEnd),i=e.schema.defaultScalarTag;if(r!==""){if(r===
"!")return{value:t,tag:i};let s=ai(r,e.tagHandlers),a=e.schema.lookupScalarTag(s);if(a){let u=a.resolve(t,!0,s);return u===k&&D(e,`cannot resolve a node with !<${s}\
> explicit tag`),{value:u,tag:a}}let c=e.schema.lookupMappingTag(s)??e.schema.lookupSequenceTag(s);if(c){t!==""&&D(e,`cannot resolve a node with !<${s}> explici\
t tag`);let u=c.create(s);return{value:c.carrierIsResult?u:ci(e,e.position,c,u),tag:c}}D(e,`unknown scalar tag !<${s}>`)}return n.style===A.PLAIN?e.schema.resolveImplicitScalarTag(
t):{value:i.resolve(t,!1,i.tagName),tag:i}}function Qr(e,n,t){let r=n.tagStart===xe?"":e.source.slice(n.tagStart,n.tagEnd);return r===""||r==="!"?t:ai(r,e.tagHandlers)}
function li(e){return e.nodeKind==="mapping"}function Yr(e){e.totalMergeKeys++,e.maxTotalMergeKeys!==-1&&e.totalMergeKeys>e.maxTotalMergeKeys&&D(e,`merge keys e\
xceeded maxTotalMergeKeys (${e.maxTotalMergeKeys})`)}function Vr(e,n,t,r){Yr(e);for(let i of r.keys(t)){if(Yr(e),n.tag.has(n.value,i))continue;let s=n.tag.addPair(
n.value,i,r.get(t,i));s&&D(e,s),n.overridable??=new Set,n.overridable.add(i)}}function ba(e,n,t,r){if(e.position=n.keyPosition,li(r))Vr(e,n,t,r);else if(r.nodeKind===
"sequence"&&Array.isArray(t)){t.length>100&&D(e,"abnormal merge sequence size");for(let i of t){let s=e.nodeTags.get(i);s||D(e,"cannot merge mappings; the provi\
ded source object is unacceptable"),Vr(e,n,i,s)}}else D(e,"cannot merge mappings; the provided source object is unacceptable")}function ya(e,n,t,r,i){if(e.position=
n.keyPosition,n.keyIsMerge){ba(e,n,r,i);return}!e.json&&n.tag.has(n.value,t)&&!n.overridable?.has(t)&&D(e,"duplicated mapping key");let s=n.tag.addPair(n.value,
t,r);s&&D(e,s),n.overridable?.delete(t)}function Xn(e,n,t){let r=e.frames[e.frames.length-1];if(r.kind==="document")r.value=n,r.hasValue=!0;else if(r.kind==="se\
quence"){li(t)&&e.nodeTags.set(n,t);let i=r.tag.addItem(r.value,n,r.index++);i&&D(e,i)}else if(r.hasKey){let i=r.key;r.key=void 0,r.hasKey=!1,ya(e,r,i,n,t)}else
r.key=n,r.keyPosition=e.position,r.hasKey=!0,r.keyIsMerge=t.tagName===ga}function Jn(e,n,t,r,i){if(n.anchorStart!==xe){let s={value:t,tag:r,isValueFinal:i};return e.
anchors.set(e.source.slice(n.anchorStart,n.anchorEnd),s),s}return null}function va(e,n){let t={...lt,...n,events:e,documents:[],eventIndex:0,position:0,frames:[],
anchors:new Map,nodeTags:new Map,tagHandlers:Object.create(null),totalMergeKeys:0,aliasCount:0};for(;t.eventIndex<t.events.length;){let r=t.events[t.eventIndex++];
switch(t.position=ha(r),r.type){case L.DOCUMENT:t.anchors=new Map,t.nodeTags=new Map,t.aliasCount=0,t.tagHandlers=Object.create(null);for(let i of r.directives)
i.kind==="tag"&&(t.tagHandlers[i.handle]=i.prefix);t.frames.push({kind:"document",position:t.position,value:void 0,hasValue:!1});break;case L.SCALAR:{let{value:i,
tag:s}=_a(t,r);Jn(t,r,i,s,!0),Xn(t,i,s);break}case L.SEQUENCE:{let i=Qr(t,r,"tag:yaml.org,2002:seq"),s=t.schema.lookupSequenceTag(i);s||D(t,`unknown sequence ta\
g !<${i}>`);let a=s.create(i),c=Jn(t,r,a,s,s.carrierIsResult);t.frames.push({kind:"sequence",position:t.position,value:a,tag:s,anchor:c,index:0});break}case L.MAPPING:{
let i=Qr(t,r,"tag:yaml.org,2002:map"),s=t.schema.lookupMappingTag(i);s||D(t,`unknown mapping tag !<${i}>`);let a=s.create(i),c=Jn(t,r,a,s,s.carrierIsResult);t.frames.
push({kind:"mapping",position:t.position,value:a,tag:s,anchor:c,key:void 0,keyPosition:t.position,hasKey:!1,keyIsMerge:!1,overridable:null});break}case L.ALIAS:{
t.maxAliases!==-1&&++t.aliasCount>t.maxAliases&&D(t,`aliases exceeded maxAliases (${t.maxAliases})`);let i=t.source.slice(r.anchorStart,r.anchorEnd),s=t.anchors.
get(i);s||D(t,`unidentified alias "${i}"`),s.isValueFinal||D(t,`recursive alias "${i}" is not supported for tag ${s.tag.tagName} because it uses finalize()`),Xn(
t,s.value,s.tag);break}case L.POP:{let i=t.frames.pop();if(i.kind==="mapping"&&i.hasKey&&(t.position=i.keyPosition,D(t,"incomplete mapping pair in event stream")),
i.kind==="document")t.documents.push(i.value);else{let s=i.tag.carrierIsResult?i.value:ci(t,i.position,i.tag,i.value);i.anchor&&(i.anchor.value=s,i.anchor.isValueFinal=
!0),Xn(t,s,i.tag)}break}}}return t.documents}var E=-1,ui=Object.prototype.hasOwnProperty,Le=1,di=2,fi=3,bn=4,wa=/[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x84\x86-\x9F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?:[^\uD800-\uDBFF]|^)[\uDC00-\uDFFF]/,
Sa=/[,\[\]{}]/,pi=/^(?:!|!!|![0-9A-Za-z-]+!)$/,tt=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$,_.!~*'()\[\]])`,mi=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$.~*'()_])`,
Ta=new RegExp(`^(?:${tt})*$`),Aa=new RegExp(`^(?:${mi})+$`),ka=new RegExp(`^(?:!(?:${tt})*|${mi}(?:${tt})*)$`),ut={filename:"",maxDepth:100};function Ea(e,n,t){
e.events.push({type:L.DOCUMENT,explicitStart:n,explicitEnd:t,directives:e.directives})}function gi(e,n,t,r,i,s,a){e.events.push({type:L.SEQUENCE,start:n,anchorStart:t,
anchorEnd:r,tagStart:i,tagEnd:s,style:a})}function hi(e,n,t,r,i,s,a){e.events.push({type:L.MAPPING,start:n,anchorStart:t,anchorEnd:r,tagStart:i,tagEnd:s,style:a})}
function zr(e,n){e.events.splice(n.eventsLength,0,{type:L.MAPPING,start:n.position,anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E,style:be.FLOW})}function $e(e,n,t,r,i,s,a,c,u=X.
CLIP,d=-1,l=!1){e.events.push({type:L.SCALAR,valueStart:n,valueEnd:t,anchorStart:r,anchorEnd:i,tagStart:s,tagEnd:a,style:c,chomping:u,indent:d,fast:l})}function xa(e,n,t){
e.events.push({type:L.ALIAS,anchorStart:n,anchorEnd:t})}function Ce(e){e.events.push({type:L.POP})}function H(e){$e(e,E,E,E,E,E,E,A.PLAIN)}function Xr(){return{
anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E}}function Ne(e){return{position:e.position,line:e.line,lineStart:e.lineStart,lineIndent:e.lineIndent,firstTabInLine:e.
firstTabInLine,eventsLength:e.events.length}}function Ie(e,n){e.position=n.position,e.line=n.line,e.lineStart=n.lineStart,e.lineIndent=n.lineIndent,e.firstTabInLine=
n.firstTabInLine,e.events.length=n.eventsLength}function b(e,n){We.throwAt(e.input.slice(0,e.length),e.position,n,e.filename)}function M(e){return e===10||e===13}
function Re(e){return e===9||e===32}function re(e){return Re(e)||M(e)}function de(e){return e===0||re(e)}function Te(e){return e===44||e===91||e===93||e===123||
e===125}function Ca(e){return e>=48&&e<=57?e-48:-1}function Na(e){if(e>=48&&e<=57)return e-48;let n=e|32;return n>=97&&n<=102?n-97+10:-1}function Ia(e){return e===
120?2:e===117?4:e===85?8:0}function La(e){return e===48||e===97||e===98||e===116||e===9||e===110||e===118||e===102||e===114||e===101||e===32||e===34||e===47||e===
92||e===78||e===95||e===76||e===80}function yn(e){e.input.charCodeAt(e.position)===10?e.position++:(e.position++,e.input.charCodeAt(e.position)===10&&e.position++),
e.line++,e.lineStart=e.position,e.lineIndent=0,e.firstTabInLine=-1}function U(e,n){let t=0,r=e.input.charCodeAt(e.position),i=e.position===e.lineStart||re(e.input.
charCodeAt(e.position-1));for(;r!==0;){for(;Re(r);)i=!0,r===9&&e.firstTabInLine===-1&&(e.firstTabInLine=e.position),r=e.input.charCodeAt(++e.position);if(n&&i&&
r===35)do r=e.input.charCodeAt(++e.position);while(!M(r)&&r!==0);if(!M(r))break;for(yn(e),t++,i=!0,r=e.input.charCodeAt(e.position);r===32;)e.lineIndent++,r=e.input.
charCodeAt(++e.position)}return t}function Oe(e,n=e.position){let t=e.input.charCodeAt(n);if((t===45||t===46)&&t===e.input.charCodeAt(n+1)&&t===e.input.charCodeAt(
n+2)){let r=e.input.charCodeAt(n+3);return r===0||re(r)}return!1}function _i(e){e.position===e.lineStart&&e.input.charCodeAt(e.position)===65279&&(e.position++,
e.lineStart=e.position)}function dt(e){if(e.position!==e.lineStart)return!1;if(Oe(e))return!0;if(e.input.charCodeAt(e.position)!==65279)return!1;let n=Ne(e);_i(
e),U(e,!0);let t=e.input.charCodeAt(e.position),r=e.position===e.lineStart&&(t===37||t===45&&Oe(e));return Ie(e,n),r}function Jr(e){let n=e.input.charCodeAt(e.position);
for(;n!==0&&!M(n);)n=e.input.charCodeAt(++e.position)}function bi(e,n,t){let r=wa.exec(e.input.slice(n,t));r!==null&&(e.position=n+r.index+r[0].length-1,b(e,"th\
e stream contains non-printable characters"))}function Oa(e,n,t){if(e.input.charCodeAt(e.position)!==33)return!1;n.tagStart!==E&&b(e,"duplication of a tag prope\
rty");let r=e.position,i=!1,s=!1,a="!",c=e.input.charCodeAt(++e.position);c===60?(i=!0,c=e.input.charCodeAt(++e.position)):c===33&&(s=!0,a="!!",c=e.input.charCodeAt(
++e.position));let u=e.position,d;if(i){for(;c!==0&&c!==62;)c=e.input.charCodeAt(++e.position);c!==62&&b(e,"unexpected end of the stream within a verbatim tag"),
d=e.input.slice(u,e.position),e.position++}else{for(;c!==0&&!re(c)&&!(t&&Te(c));)c===33&&(s?b(e,"tag suffix cannot contain exclamation marks"):(a=e.input.slice(
u-1,e.position+1),pi.test(a)||b(e,"named tag handle cannot contain such characters"),s=!0,u=e.position+1)),c=e.input.charCodeAt(++e.position);d=e.input.slice(u,
e.position),Sa.test(d)&&b(e,"tag suffix cannot contain flow indicator characters")}return d&&!(i?Ta.test(d):Aa.test(d))&&b(e,`tag name cannot contain such chara\
cters: ${d}`),!i&&a!=="!"&&a!=="!!"&&!ui.call(e.tagHandlers,a)&&b(e,`undeclared tag handle "${a}"`),n.tagStart=r,n.tagEnd=e.position,!0}function Pa(e,n){if(e.input.
charCodeAt(e.position)!==38)return!1;n.anchorStart!==E&&b(e,"duplication of an anchor property"),e.position++;let t=e.position;for(;e.input.charCodeAt(e.position)!==
0&&!re(e.input.charCodeAt(e.position))&&!Te(e.input.charCodeAt(e.position));)e.position++;return e.position===t&&b(e,"name of an anchor node must contain at lea\
st one character"),n.anchorStart=t,n.anchorEnd=e.position,!0}function $a(e,n){if(e.input.charCodeAt(e.position)!==42)return!1;(n.anchorStart!==E||n.tagStart!==E)&&
b(e,"alias node should not have any properties"),e.position++;let t=e.position;for(;e.input.charCodeAt(e.position)!==0&&!re(e.input.charCodeAt(e.position))&&!Te(
e.input.charCodeAt(e.position));)e.position++;return e.position===t&&b(e,"name of an alias node must contain at least one character"),xa(e,t,e.position),!0}function rt(e,n){
U(e,!1),e.lineIndent<n&&b(e,"deficient indentation")}function Ra(e,n,t){if(e.input.charCodeAt(e.position)!==39)return!1;e.position++;let r=e.position,i=!0;for(;e.
input.charCodeAt(e.position)!==0;){let s=e.input.charCodeAt(e.position);if(s===39){if(e.input.charCodeAt(e.position+1)===39){i=!1,e.position+=2;continue}let a=e.
position;return e.position++,$e(e,r,a,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,A.SINGLE_QUOTED,X.CLIP,-1,i),!0}M(s)?(i=!1,rt(e,n)):e.position===e.lineStart&&
Oe(e)?b(e,"unexpected end of the document within a single quoted scalar"):s!==9&&s<32?b(e,"expected valid JSON character"):e.position++}b(e,"unexpected end of t\
he stream within a single quoted scalar")}function Ma(e,n,t){if(e.input.charCodeAt(e.position)!==34)return!1;e.position++;let r=e.position,i=!0;for(;e.input.charCodeAt(
e.position)!==0;){let s=e.input.charCodeAt(e.position);if(s===34){let a=e.position;return e.position++,$e(e,r,a,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,A.
DOUBLE_QUOTED,X.CLIP,-1,i),!0}if(s===92){i=!1;let a=e.input.charCodeAt(++e.position);if(M(a))rt(e,n);else if(La(a))e.position++;else{let c=Ia(a);for(c===0&&b(e,
"unknown escape sequence");c-- >0;)e.position++,Na(e.input.charCodeAt(e.position))<0&&b(e,"expected hexadecimal character");e.position++}}else M(s)?(i=!1,rt(e,n)):
e.position===e.lineStart&&Oe(e)?b(e,"unexpected end of the document within a double quoted scalar"):s!==9&&s<32?b(e,"expected valid JSON character"):e.position++}
b(e,"unexpected end of the stream within a double quoted scalar")}function Fa(e,n,t){let r=e.input.charCodeAt(e.position),i=X.CLIP,s=-1,a=!1;if(r!==124&&r!==62)
return!1;let c=r===124?A.LITERAL_BLOCK:A.FOLDED_BLOCK;for(e.position++;e.input.charCodeAt(e.position)!==0;){let f=e.input.charCodeAt(e.position),g=Ca(f);if(f===
43||f===45)i!==X.CLIP&&b(e,"repeat of a chomping mode identifier"),i=f===43?X.KEEP:X.STRIP,e.position++;else if(g>=0)g===0&&b(e,"bad explicit indentation width \
of a block scalar; it cannot be less than one"),a&&b(e,"repeat of an indentation width identifier"),s=n+g-1,a=!0,e.position++;else break}let u=!1;for(;Re(e.input.
charCodeAt(e.position));)u=!0,e.position++;u&&e.input.charCodeAt(e.position)===35&&Jr(e),M(e.input.charCodeAt(e.position))?yn(e):e.input.charCodeAt(e.position)!==
0&&b(e,"a line break is expected");let d=a?s:-1,l=0,p=e.position,m=e.position;for(;e.input.charCodeAt(e.position)!==0;){let f=e.position,g=0;for(;e.input.charCodeAt(
f+g)===32;)g++;let _=e.input.charCodeAt(f+g);if(_===0){d>=0?g>d&&(m=f+g):g>0&&(m=f+g);break}if(dt(e))break;if(!a&&d===-1&&M(_)&&(l=Math.max(l,g)),!a&&d===-1&&!M(
_)&&(_===9&&g<n&&(e.position=f+g,b(e,"tab characters must not be used in indentation")),g>=n&&g<l&&(e.position=f+g,b(e,"bad indentation of a mapping entry"))),d===
-1&&_!==0&&!M(_)&&g<n){e.lineIndent=g,e.position=f+g;break}!a&&_!==0&&!M(_)&&d===-1&&(d=g);let h=d===-1?n+1:d;if(_!==0&&!M(_)&&g<h){e.lineIndent=g,e.position=f+
g;break}Jr(e),m=e.position,M(e.input.charCodeAt(e.position))&&(yn(e),m=e.position)}return bi(e,p,m),$e(e,p,m,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,c,i,d),
!0}function Da(e,n){let t=e.input.charCodeAt(e.position),r=n===Le;if(t===0||re(t)||t===35||t===38||t===42||t===33||t===124||t===62||t===39||t===34||t===37||t===
64||t===96||Te(t))return!1;if(t===63||t===45){let i=e.input.charCodeAt(e.position+1);if(de(i)||r&&Te(i))return!1}return!0}function Ba(e,n,t,r){if(!Da(e,t))return!1;
let i=e.position,s=e.position,a=e.input.charCodeAt(e.position),c=t===Le,u=!1;for(;a!==0&&!dt(e);){if(a===58){let d=e.input.charCodeAt(e.position+1);if(de(d)||c&&
Te(d))break}else if(a===35){if(re(e.input.charCodeAt(e.position-1)))break}else{if(c&&Te(a))break;if(M(a)){let d=e.position,l=e.line,p=e.lineStart,m=e.lineIndent;
if(U(e,!1),e.lineIndent>=n){u=!0,a=e.input.charCodeAt(e.position);continue}e.position=d,e.line=l,e.lineStart=p,e.lineIndent=m;break}}Re(a)||(s=e.position+1),a=e.
input.charCodeAt(++e.position)}return s===i?!1:(bi(e,i,s),$e(e,i,s,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,A.PLAIN,X.CLIP,-1,!u),!0)}function je(e,n){let t=e.
line;U(e,!0),(e.line>t&&e.lineIndent<n||e.firstTabInLine!==-1&&e.lineIndent<n)&&b(e,"deficient indentation")}function Ua(e,n,t){let r=e.input.charCodeAt(e.position),
i=r===123,s=e.position,a=!0;if(r!==91&&r!==123)return!1;let c=i?125:93;for(i?hi(e,s,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,be.FLOW):gi(e,s,t.anchorStart,
t.anchorEnd,t.tagStart,t.tagEnd,be.FLOW),e.position++;e.input.charCodeAt(e.position)!==0;){je(e,n);let u=e.input.charCodeAt(e.position);if(u===c)return e.position++,
Ce(e),!0;a?u===44&&b(e,"expected the node content, but found ','"):b(e,"missed comma between flow collection entries");let d=!1,l=!1;u===63&&re(e.input.charCodeAt(
e.position+1))&&(d=l=!0,e.position+=1,je(e,n));let p=e.line,m=Ne(e),f=Pe(e,n,Le,!1,!0);je(e,n),u=e.input.charCodeAt(e.position),(i||l||e.line===p)&&u===58?(d=!0,
e.position++,je(e,n),i||zr(e,m),f||H(e),Pe(e,n,Le,!1,!0)||H(e),je(e,n),i||Ce(e)):i&&d?(f||H(e),H(e)):i?H(e):d&&(zr(e,m),f||H(e),H(e),Ce(e)),u=e.input.charCodeAt(
e.position),u===44?(a=!0,e.position++):a=!1}b(e,"unexpected end of the stream within a flow collection")}function Zr(e,n,t){if(e.firstTabInLine!==-1||e.input.charCodeAt(
e.position)!==45||!de(e.input.charCodeAt(e.position+1)))return!1;for(gi(e,e.position,t.anchorStart,t.anchorEnd,t.tagStart,t.tagEnd,be.BLOCK);e.input.charCodeAt(
e.position)===45&&de(e.input.charCodeAt(e.position+1));){e.firstTabInLine!==-1&&(e.position=e.firstTabInLine,b(e,"tab characters must not be used in indentation"));
let r=e.line;e.position++;let i=U(e,!0)>0;if(e.firstTabInLine!==-1&&e.input.charCodeAt(e.position)===45&&de(e.input.charCodeAt(e.position+1))&&b(e,"bad indentat\
ion of a sequence entry"),i&&e.lineIndent<=n?H(e):Pe(e,n,fi,!1,!0),U(e,!0),e.lineIndent<n||e.position>=e.length)break;e.lineIndent>n&&b(e,"bad indentation of a \
sequence entry"),e.line===r&&e.input.charCodeAt(e.position)===45&&de(e.input.charCodeAt(e.position+1))&&b(e,"bad indentation of a sequence entry")}return Ce(e),
!0}function Zn(e,n,t,r){let i=!1,s=!1,a=!1,c=!1;if(e.firstTabInLine!==-1)return!1;let u=e.input.charCodeAt(e.position);for(;u!==0;){!i&&e.firstTabInLine!==-1&&(e.
position=e.firstTabInLine,b(e,"tab characters must not be used in indentation"));let d=e.input.charCodeAt(e.position+1),l=e.line;if((u===63||u===58)&&de(d))a||(hi(
e,e.position,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,be.BLOCK),a=!0),u===63?(i&&H(e),s=!0,i=!0):(i||(H(e),s=!0),i=!1),e.position+=1,c=!0;else{i&&(H(e),i=!1);
let p=Ne(e);if(!Pe(e,t,di,!1,!0))break;if(e.line===l){for(u=e.input.charCodeAt(e.position);Re(u);)u=e.input.charCodeAt(++e.position);if(u===58)u=e.input.charCodeAt(
++e.position),de(u)||b(e,"a whitespace character is expected after the key-value separator within a block mapping"),a||(e.events.splice(p.eventsLength,0,{type:L.
MAPPING,start:p.position,anchorStart:r.anchorStart,anchorEnd:r.anchorEnd,tagStart:r.tagStart,tagEnd:r.tagEnd,style:be.BLOCK}),a=!0),s=!0,i=!1,c=!1;else if(s)b(e,
"expected ':' after a mapping key");else return r.anchorStart!==E||r.tagStart!==E?(Ie(e,p),!1):!0}else if(s)b(e,"can not read a block mapping entry; a multiline\
 key may not be an implicit key");else return r.anchorStart!==E||r.tagStart!==E?(Ie(e,p),!1):!0}if(Pe(e,n,bn,!0,c)&&(c=!1),i||c&&(H(e),c=!1),U(e,!0),u=e.input.charCodeAt(
e.position),(e.line===l||e.lineIndent>n)&&u!==0)b(e,"bad indentation of a mapping entry");else if(e.lineIndent<n)break}return s?(i&&H(e),a&&Ce(e),!0):!1}function Pe(e,n,t,r,i,s=!0){
e.depth>=e.maxDepth&&b(e,`nesting exceeded maxDepth (${e.maxDepth})`),e.depth++;let a=1,c=!1,u=!1,d=null,l=Xr(),p=t===bn||t===fi,m=p,f=p;if(r&&U(e,!0)&&(c=!0,e.
lineIndent>n?a=1:e.lineIndent===n?a=0:a=-1),a===1)for(;;){let g=e.input.charCodeAt(e.position),_=Ne(e);if(c&&a!==1&&(g===33||g===38))break;if(c&&f&&(l.tagStart!==
E||l.anchorStart!==E)&&(g===33||g===38)){let h=Ne(e),v=n+1;if(Zn(e,e.position-e.lineStart,v,l)&&e.events[h.eventsLength]?.type===L.MAPPING)return e.depth--,!0;Ie(
e,h)}if(c&&(g===33&&l.tagStart!==E||g===38&&l.anchorStart!==E)||!Oa(e,l,t===Le)&&!Pa(e,l))break;d===null&&(d=_),U(e,!0)?(c=!0,m=f,e.lineIndent>n?a=1:e.lineIndent===
n?a=0:a=-1):m=!1}if(m&&(m=c||i),a===1||t===bn){let g=t===Le||t===di?n:n+1,_=e.position-e.lineStart;if(a===1)if(m&&(Zr(e,_,l)||Zn(e,_,g,l))||Ua(e,g,l))u=!0;else{
let h=e.input.charCodeAt(e.position);if(d!==null&&s&&f&&!m&&h!==124&&h!==62){let v=Ne(e),S=d.position-d.lineStart;Ie(e,d),Zn(e,S,g,Xr())&&e.events[v.eventsLength]?.
type===L.MAPPING?u=!0:Ie(e,v)}!u&&(p&&Fa(e,g,l)||Ra(e,g,l)||Ma(e,g,l)||$a(e,l)||Ba(e,g,t,l))&&(u=!0)}else a===0&&(u=m&&Zr(e,_,l))}return p=p&&!u,!u&&(l.anchorStart!==
E||l.tagStart!==E||p)&&($e(e,E,E,l.anchorStart,l.anchorEnd,l.tagStart,l.tagEnd,A.PLAIN),u=!0),e.depth--,u||l.anchorStart!==E||l.tagStart!==E}function Ga(e){if(e.
lineIndent>0||e.input.charCodeAt(e.position)!==37)return!1;e.position++;let n=e.position;for(;e.input.charCodeAt(e.position)!==0&&!re(e.input.charCodeAt(e.position));)
e.position++;let t=e.input.slice(n,e.position),r=[];for(t.length===0&&b(e,"directive name must not be less than one character in length");e.input.charCodeAt(e.position)!==
0&&!M(e.input.charCodeAt(e.position));){for(;Re(e.input.charCodeAt(e.position));)e.position++;if(e.input.charCodeAt(e.position)===35||M(e.input.charCodeAt(e.position))||
e.input.charCodeAt(e.position)===0)break;let i=e.position;for(;e.input.charCodeAt(e.position)!==0&&!re(e.input.charCodeAt(e.position));)e.position++;r.push(e.input.
slice(i,e.position))}if(M(e.input.charCodeAt(e.position))&&yn(e),t==="YAML"){e.directives.some(s=>s.kind==="yaml")&&b(e,"duplication of %YAML directive"),r.length!==
1&&b(e,"YAML directive accepts exactly one argument");let i=/^([0-9]+)\.([0-9]+)$/.exec(r[0]);i===null&&b(e,"ill-formed argument of the YAML directive"),parseInt(
i[1],10)!==1&&b(e,"unacceptable YAML version of the document"),e.directives.push({kind:"yaml",version:r[0]})}else if(t==="TAG"){r.length!==2&&b(e,"TAG directive\
 accepts exactly two arguments");let[i,s]=r;pi.test(i)||b(e,"ill-formed tag handle (first argument) of the TAG directive"),ui.call(e.tagHandlers,i)&&b(e,`there \
is a previously declared suffix for "${i}" tag handle`),ka.test(s)||b(e,"ill-formed tag prefix (second argument) of the TAG directive"),e.tagHandlers[i]=s,e.directives.
push({kind:"tag",handle:i,prefix:s})}return!0}function qa(e){e.directives=[],e.tagHandlers=Object.create(null);let n=!1;for(U(e,!0);Ga(e);)n=!0,U(e,!0);let t=!1,
r=!1,i=!0;if(e.lineIndent===0&&e.input.charCodeAt(e.position)===45&&e.input.charCodeAt(e.position+1)===45&&e.input.charCodeAt(e.position+2)===45&&de(e.input.charCodeAt(
e.position+3))){t=!0;let c=e.line;e.position+=3,U(e,!0),i=e.line>c}else n&&b(e,"directives end mark is expected");let s=e.events.length;if(!t&&e.position===e.lineStart&&
e.input.charCodeAt(e.position)===46&&Oe(e)){e.position+=3,U(e,!0);return}if(Ea(e,t,!1),Pe(e,e.lineIndent-1,bn,!1,i,i)||H(e),U(e,!0),e.position===e.lineStart&&Oe(
e)&&(r=e.input.charCodeAt(e.position)===46,r)){let c=e.line;e.position+=3,U(e,!0),e.line===c&&e.position<e.length&&b(e,"end of the stream or a document separato\
r is expected")}let a=e.events[s];a?.type===L.DOCUMENT&&(a.explicitEnd=r),Ce(e),!r&&e.position<e.length&&!dt(e)&&b(e,"end of the stream or a document separator \
is expected")}function Ka(e,n){let t=e.length,r={...ut,...n,input:`${e}\0`,length:t,position:0,line:0,lineStart:0,lineIndent:0,firstTabInLine:-1,depth:0,directives:[],
tagHandlers:Object.create(null),events:[]},i=e.indexOf("\0");for(i!==-1&&We.throwAt(e,i,"null byte is not allowed in input",r.filename);r.position<r.length&&(_i(
r),U(r,!0),!(r.position>=r.length));){let s=r.position;qa(r),r.position===s&&b(r,"can not read a document")}return r.events}var ja={...ut,...lt};function Wa(e,n={}){
let t={...ja,...n},r=String(e),i=Object.keys(ut),s=Object.keys(lt);return va(Ka(r,qr(t,i)),{...qr(t,s),source:r})}function yi(e,n,t){let r=null;typeof n=="funct\
ion"?r=n:n!==null&&typeof n=="object"&&(t=n);let i=Wa(e,t);if(r===null)return i;for(let s of i)r(s)}function Tn(e,n){return(e&1<<n)!==0}var ei={applyQuoteFlowKeysOption:Ha,doubleQuoteForInvisibles:Qa,doubleQuoteWhitespaceOnly:Ya,applyForceQuotesOption:Va,tryLongOrMultilineAsBlock:za,
quoteInvalidPlain:Xa,fallbackToDoubleQuoted:Ja};function vi(e){return e.presenterOptions.quoteStyle==="single"&&Tn(e.allowedStylesMask,A.SINGLE_QUOTED)?A.SINGLE_QUOTED:
A.DOUBLE_QUOTED}function Ha(e){e.presenterOptions.quoteFlowKeys&&(!e.isKey||!e.flowOnly||e.style!==A.PLAIN||(e.style=A.DOUBLE_QUOTED))}function Qa(e){e.style===
A.PLAIN&&/[\t\x7F-\xA0\u2028\u2029\uFEFF\uFFFE\uFFFF]/.test(e.node.value)&&(e.style=A.DOUBLE_QUOTED)}function Ya(e){e.style===A.PLAIN&&/^\s+$/.test(e.node.value)&&
(e.style=A.DOUBLE_QUOTED)}function Va(e){e.presenterOptions.forceQuotes&&(e.isKey||e.style!==A.PLAIN||e.node.tag===e.presenterOptions.schema.defaultScalarTag.tagName&&
(e.style=e.node.value.includes(`
`)?A.DOUBLE_QUOTED:vi(e)))}function za(e){if(e.style!==A.PLAIN||e.isKey)return;let n=e.node.value,t=n.indexOf(`
`)!==-1;if(!Tn(e.allowedStylesMask,A.LITERAL_BLOCK)){t&&(e.style=A.DOUBLE_QUOTED);return}let r=e.presenterOptions.lineWidth;if(r===-1){t&&(e.style=A.LITERAL_BLOCK);
return}let i=Math.max(Math.min(r,40),r-e.shiftOfContent),s=0,a=!1;for(;s<=n.length;){let c=n.length,u=n.indexOf(`
`,s);u!==-1&&(c=u);let d=n.slice(s,c);if(d.length>i&&d[0]!==" "&&/ [^ \t]/.test(d)&&(a=!0),u===-1)break;s=u+1}a?e.style=A.FOLDED_BLOCK:t&&(e.style=A.LITERAL_BLOCK)}
function Xa(e){e.style===A.PLAIN&&!Tn(e.allowedStylesMask,A.PLAIN)&&(e.style=vi(e))}function Ja(e){Tn(e.allowedStylesMask,e.style)||(e.style=A.DOUBLE_QUOTED)}var Za="[\\x09\\x0A\\x0D\\x20-\\x7E\\x85\\xA0-\\uD7FF\\uE000-\\uFFFD\\u{10000}-\\u{10FFFF}]",ec="[\\n\\r]",nc="\\uFEFF",ft="[ \\t]",wi=`(?:(?!(?:${ec}|${nc}))${Za}\
)`,An=`(?:(?!${ft})${wi})`,Si="[\\x09\\x20-\\uD7FF\\uE000-\\uFFFF\\u{10000}-\\u{10FFFF}]",Ti="[-?:,\\[\\]{}#&*!|>'\"%@`]",tc="[,\\[\\]{}]",it=An,ot=`(?:(?!${tc}\
)${An})`,rc=`(?:(?:(?!${Ti})${An})|[?:-](?=${it}))`,ic=`(?:(?:(?!${Ti})${An})|[?:-](?=${ot}))`,Ai=`(?:(?:(?![:#])${it})|:(?=${it}))#*`,ki=`(?:(?:(?![:#])${ot})|\
:(?=${ot}))#*`,Ei=`(?:${ft}*${Ai})*`,xi=`(?:${ft}*${ki})*`,Ci=`${rc}#*${Ei}`,Ni=`${ic}#*${xi}`,oc=Ci,sc=Ni,ac=`\\n+${Ai}${Ei}`,cc=`\\n+${ki}${xi}`,lc=`${Ci}(?:${ac}\
)*`,uc=`${Ni}(?:${cc})*`,_u=new RegExp(`^(?:${lc})$`,"u"),bu=new RegExp(`^(?:${uc})$`,"u"),yu=new RegExp(`^(?:${oc})$`,"u"),vu=new RegExp(`^(?:${sc})$`,"u"),wu=new RegExp(
`^(?:${Si})*$`,"u"),Su=new RegExp(`^(?:${Si}|\\n)*$`,"u"),Tu=new RegExp(`^(?:${wi}|\\n)*$`,"u");var dc={indent:2,seqNoIndent:!1,seqInlineFirst:!0,lineWidth:80,flowBracketPadding:!1,flowSkipCommaSpace:!1,flowSkipColonSpace:!1,quoteFlowKeys:!1,quoteStyle:"si\
ngle",forceQuotes:!1,scalarStyleRules:Object.keys(ei).map(e=>Reflect.get(ei,e)),tagBeforeAnchor:!1};var Au={...dc,schema:ta,skipInvalid:!1,noRefs:!1,flowLevel:-1,sortKeys:!1,transform:()=>{}};var ku=L.DOCUMENT,Eu=L.SEQUENCE,xu=L.MAPPING,Cu=L.SCALAR,Nu=L.ALIAS,Iu=L.POP,Lu=A.PLAIN,Ou=A.SINGLE_QUOTED,Pu=A.DOUBLE_QUOTED,$u=A.LITERAL_BLOCK,Ru=A.FOLDED_BLOCK,
Mu=be.BLOCK,Fu=be.FLOW,Du=X.CLIP,Bu=X.STRIP,Uu=X.KEEP;var fc=1e6;function Ii(e){if(e.length>fc)throw new Error("the manifests must have at most 1 MB");let n=[];for(let t of yi(e))if(t!=null){if(typeof t!="object"||
Array.isArray(t))throw new Error("a manifest must be an object");n.push(t)}if(!n.length)throw new Error("there is no manifest");return n}function Li(e){for(let n of e){
let t=n.metadata?.namespace;if(typeof t=="string"&&t)return t}return""}var pc=100;function Oi(){let e=j(),n=O(e.gangs),t=x(()=>[...new Set(n.items.map(h=>h.metadata.namespace??""))].sort(),[n.items]),[r,i]=I(""),[s,a]=I(""),[c,u]=I(
!1),[d,l]=I(""),[p,m]=I(),f=le(void 0),g=async()=>{f.current?.abort();let h=f.current=new AbortController;l(""),m(void 0),u(!0);try{let v=Ii(r),S=await e.api.fit(
s||Li(v)||"default",v,h.signal);h.signal.aborted||m(S)}catch(v){h.signal.aborted||l(v instanceof Error?v.message:String(v))}finally{h.signal.aborted||u(!1)}},_=async h=>{
let v=await Promise.all([...h??[]].map(S=>S.text()));v.length&&i(v.join(`
---
`))};return o(T,{children:[o(Q,{of:[n],children:"What if"}),o("p",{children:"Would the gangs of these manifests fit now? Nothing is created."}),o("form",{onSubmit:h=>{
h.preventDefault(),g()},onDragOver:h=>h.preventDefault(),onDrop:h=>{h.preventDefault(),_(h.dataTransfer?.files)},children:[o("label",{for:"manifests",children:"\
Manifests (YAML or JSON; paste or drop files)"}),o("textarea",{id:"manifests",rows:16,spellcheck:!1,value:r,onInput:h=>i(h.currentTarget.value),onKeyDown:h=>{h.
key==="Enter"&&h.ctrlKey&&g()}}),o("div",{class:"filters",children:[o("label",{children:["Namespace ",o("input",{list:"namespaces",value:s,placeholder:"of the m\
anifests",onInput:h=>a(h.currentTarget.value)})]}),o("datalist",{id:"namespaces",children:t.map(h=>o("option",{value:h},h))}),o("label",{class:"file",children:[
"File ",o("input",{type:"file",multiple:!0,accept:".yaml,.yml,.json",onChange:h=>{_(h.currentTarget.files)}})]}),o("button",{type:"submit",disabled:c||!r.trim(),
children:c?"Asking \u2026":"Does it fit?"})]})]}),o("div",{"aria-live":"polite",children:[d&&o("p",{class:"error",children:d}),p?.status&&o(mc,{gangs:p.status.gangs??
[]})]})]})}function mc({gangs:e}){return o(T,{children:e.map(n=>o(gc,{fit:n},n.name))})}function gc({fit:e}){let[n,t]=e.fits?["fits now","good"]:e.refused?["ref\
used","bad"]:e.ever?["does not fit now","wait"]:[e.needsNodes?"needs more or other nodes":"can never run here","bad"],r=e.placement??[];return o("section",{children:[
o("h2",{children:[e.name," ",o("span",{class:`badge ${t}`,children:n})]}),o("p",{children:[e.members," members. ",e.message]}),e.displaces&&o("p",{children:[e.displaces.
members," pods would be evicted for it (",e.displaces.action,"): ",o(he,{named:e.displaces.gangs})]}),r.length>0&&o(z,{label:`Placement of ${e.name}`,children:o(
"table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Node"}),o("th",{scope:"col",class:"number",children:"Members"})]})}),o("t\
body",{children:r.slice(0,pc).map(i=>o("tr",{children:[o("th",{scope:"row",children:i.node}),o("td",{class:"number",children:i.members})]},i.node))})]})})]})}var He="tutti.token",pt=[{page:"overview",title:"Overview",view:xr},{page:"queues",title:"Queues",view:Ir},{page:"gangs",title:"Gangs",view:yr},{page:"map",title:"\
Map",view:Er},{page:"timeline",title:"Timeline",view:Ur},{page:"what-if",title:"What if",view:Oi}];function hc(){let[e,n]=I(()=>sessionStorage.getItem(He)??""),
[t,r]=I({at:e?"in":"unknown"}),[i,s]=I(),a=x(()=>{let d=l=>{if(!e)return s(l);l&&(sessionStorage.removeItem(He),r({at:"token form",message:"The token was refuse\
d."}))};return new dn(new on(e,d))},[e]);q(()=>()=>a.stop(),[a]),q(()=>{t.at==="unknown"&&a.api.check().then(()=>r({at:"in"}),d=>{let l=d instanceof Y?d.noUser:
void 0;r(l==="token wanted"?{at:"token form",message:""}:l?{at:"no user",why:l}:{at:"no answer",message:d.message})})},[a,t]);let c=d=>{sessionStorage.setItem(He,
d),n(d),r({at:"in"})},u=()=>{sessionStorage.removeItem(He),n(""),r({at:"token form",message:""})};switch(t.at){case"unknown":return o("main",{class:"login",children:"\
Connecting \u2026"});case"token form":return o(Wt,{onToken:c,message:t.message});case"no answer":return o(Qt,{message:t.message});case"no user":return o(Ht,{why:t.
why});case"in":return o(Gn.Provider,{value:a,children:o(_c,{onLogOut:e?u:void 0,ended:i})})}}function _c({onLogOut:e,ended:n}){let t=cr(),r=pt.find(p=>p.page===
t.page)??pt[0],i=t.page==="gangs"&&t.parts.length===2,s=i?dr:r.view,a=le(null),c=[t.page,...t.parts].join("/"),u=le(!0);q(()=>{document.title=`${i?t.parts[1]:r.
title} \u2013 Tutti`,!u.current&&document.activeElement?.tagName!=="INPUT"&&a.current?.focus(),u.current=!1},[c]);let d=p=>{let m=ke(location.hash);m.page==="ga\
ngs"&&!m.parts.length?F("search",p):location.hash=`${V("gangs")}?${new URLSearchParams({search:p})}`},l=t.page==="gangs"&&!i?t.query.get("search")??"":"";return o(
T,{children:[o("a",{class:"skip",href:"#main",onClick:p=>{p.preventDefault(),a.current?.focus()},children:"Skip to content"}),o("header",{children:[o("strong",{
class:"brand",children:"Tutti"}),o("nav",{"aria-label":"Pages",children:pt.map(({page:p,title:m})=>o("a",{href:V(p),"aria-current":r.page===p?"page":void 0,children:m},
p))}),o(lr,{value:l,onSearch:d}),o(ur,{}),e&&o("button",{type:"button",onClick:e,children:"Log out"})]}),o("main",{id:"main",tabIndex:-1,ref:a,children:[n&&o(Yt,
{why:n}),o(s,{route:t},i?c:r.page)]})]})}function bc(){let e=new URLSearchParams(location.hash.slice(1)).get("token");e&&(sessionStorage.setItem(He,e),history.replaceState(
null,"",location.pathname))}jt();bc();addEventListener("hashchange",()=>{location.hash.startsWith("#token=")&&location.reload()});xt(o(hc,{}),document.getElementById(
"app"));
